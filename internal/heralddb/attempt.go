package heralddb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	"waybill/internal/herald"
	"waybill/internal/planted"
)

// lastVersion is the highest dateModified (int unsigned) that still leaves room
// for the two steps of an attempt: its claim and its result.
const lastVersion = math.MaxUint32 - 2

// loadSQL reads a request, its hook and the breaker's evidence at one moment.
// The scalar subquery walks key_ratelimit from its end, so it costs the same
// however many failed rows a hook keeps.
const loadSQL = `
SELECT r.phid, r.webhookPHID, r.objectPHID, r.status, r.properties,
       r.lastRequestResult, r.lastRequestEpoch, r.dateCreated, r.dateModified,
       h.phid, h.name, h.webhookURI, h.status, h.hmacKey,
       (SELECT f.lastRequestEpoch FROM herald_webhookrequest f
         WHERE f.webhookPHID = r.webhookPHID AND f.lastRequestResult = 'fail'
         ORDER BY f.lastRequestEpoch DESC LIMIT 1 OFFSET ?),
       UNIX_TIMESTAMP()
  FROM herald_webhookrequest r
  LEFT JOIN herald_webhook h ON h.phid = r.webhookPHID
 WHERE r.id = ?`

// Load takes the snapshot an attempt decides on: herald.ErrGone when there is no row.
func (d *DB) Load(ctx context.Context, id uint64) (herald.Snapshot, error) {
	s := herald.Snapshot{Request: herald.Request{ID: id}}
	r := &s.Request
	var phid, name, uri, status sql.NullString
	var key []byte
	var failure sql.NullInt64
	err := d.pool.QueryRowContext(ctx, loadSQL, max(d.cfg.BreakerThreshold-1, 0), id).Scan(
		&r.PHID, &r.HookPHID, &r.ObjectPHID, &r.Status, &r.Properties,
		&r.LastResult, &r.LastEpoch, &r.Created, &r.Modified,
		&phid, &name, &uri, &status, &key, &failure, &s.Now)
	if errors.Is(err, sql.ErrNoRows) {
		return herald.Snapshot{}, herald.ErrGone
	}
	if err != nil {
		return herald.Snapshot{}, fmt.Errorf("read a request: %w", err)
	}
	if phid.Valid {
		s.Hook = &herald.Hook{PHID: phid.String, Name: name.String, URI: uri.String, Status: status.String, HMACKey: key}
	}
	s.ThresholdFailure = failure.Int64
	return s, nil
}

// claimSQL moves the version by compare-and-set. LAST_INSERT_ID hands the new
// version back in the same answer: a second SELECT could return somebody else's.
const claimSQL = `
UPDATE herald_webhookrequest
   SET dateModified = LAST_INSERT_ID(GREATEST(dateModified + 1, UNIX_TIMESTAMP()))
 WHERE id = ? AND status = 'queued' AND dateModified = ?`

// lockClause makes the claim depend on the hook's lock, where the lock lives on
// the server of the rows: a session that lost it wins nothing.
const lockClause = " AND IS_USED_LOCK(?) = ?"

// Claim tries to take the row at the version seen. won is false when somebody
// was faster, the row is no longer queued or the lock is not held as given.
// After an error the claim may or may not stand: nothing may be sent.
// herald.ErrUnclaimable says that nothing was tried: a version near the end of
// its column would leave the claim without room for its result. herald.ErrNoVersion
// says that the claim stands and is of no use.
func (d *DB) Claim(ctx context.Context, id uint64, seen int64, lock herald.Lock) (c herald.Claim, won bool, err error) {
	if seen > lastVersion {
		return herald.Claim{}, false, herald.ErrUnclaimable
	}
	query, args := claimSQL, []any{id, seen}
	if lock.Name != "" {
		query += lockClause
		args = append(args, lock.Name, lock.Connection)
	}
	res, err := d.pool.ExecContext(ctx, query, args...)
	if err != nil {
		return herald.Claim{}, false, fmt.Errorf("claim a request: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil || n != 1 {
		return herald.Claim{}, false, err
	}
	version, err := res.LastInsertId()
	if planted.Is(planted.SecondSelect) {
		err = d.pool.QueryRowContext(ctx, "SELECT dateModified FROM herald_webhookrequest WHERE id = ?", id).Scan(&version)
	}
	if err == nil && version <= seen {
		return herald.Claim{}, false, herald.ErrNoVersion
	}
	return herald.Claim{ID: id, Version: version}, err == nil, err
}

// finishSQL writes a result under the fence: the claimed version and queued.
const finishSQL = `
UPDATE herald_webhookrequest
   SET status = ?, lastRequestResult = ?, properties = ?,
       lastRequestEpoch = IF(? = -1, UNIX_TIMESTAMP(), ?),
       dateModified = GREATEST(dateModified + 1, UNIX_TIMESTAMP())
 WHERE id = ? AND status = 'queued' AND dateModified = ?`

// Finish writes a result under its claim's fence. A refusal is looked into: the
// same result already there is our own write whose acknowledgement was lost.
// After an error the result may or may not stand; the same write again finds out.
func (d *DB) Finish(ctx context.Context, w herald.ResultWrite) (herald.WriteOutcome, error) {
	if w.Claim.Version > lastVersion+1 {
		return "", herald.ErrUnclaimable
	}
	query := finishSQL
	if planted.Is(planted.NoFence) {
		query = strings.Replace(query, " AND status = 'queued' AND dateModified = ?", " AND ? > 0", 1)
	}
	res, err := d.pool.ExecContext(ctx, query, string(w.Verdict.Status), string(w.Verdict.Result),
		string(w.Properties), w.Epoch, w.Epoch, w.Claim.ID, w.Claim.Version)
	if err != nil {
		return "", fmt.Errorf("write a result: %w", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return "", fmt.Errorf("write a result: %w", err)
	}
	if n == 1 {
		return herald.Written, nil
	}
	return d.refused(ctx, w)
}

// refused tells our own earlier write from somebody else's.
func (d *DB) refused(ctx context.Context, w herald.ResultWrite) (herald.WriteOutcome, error) {
	s, err := d.Load(ctx, w.Claim.ID)
	switch {
	case errors.Is(err, herald.ErrGone):
		return herald.Collected, nil
	case err != nil:
		return "", err
	case stands(s.Request, w):
		return herald.Written, nil
	}
	return herald.Fenced, nil
}

// stands reports whether the row carries the result. A repeated failure looks
// like the one before it in everything but its moment.
func stands(r herald.Request, w herald.ResultWrite) bool {
	same := r.Status == w.Verdict.Status && r.LastResult == w.Verdict.Result &&
		r.Modified > w.Claim.Version && bytes.Equal(r.Properties, w.Properties)
	return same && (r.Status != herald.StatusQueued || r.LastEpoch != w.Before)
}
