package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"waybill/internal/herald"
)

// evidenceAtOnce rows go into one statement: some 60 KB, far below any server's
// packet limit.
const evidenceAtOnce = 500

// Evidence is forgotten by this server's clock a day after it was seen. It
// counts for ten minutes by the clock of Phorge's server; a day is more than
// two clocks are ever apart, and one that is counted again holds, not sends.
const forgetSQL = "DELETE FROM silence_evidence WHERE seen_at < UTC_TIMESTAMP(3) - INTERVAL 1 DAY"

// Hold remembers rows that say that the site is silent, and, if one of them is
// new, writes the pause given in the same transaction: no process can see
// evidence as known whose pause is not there, and after a resume only new rows
// hold again. held is true for the one caller whose pause it became; a pause or
// a release that stands already is left as it is.
func (l *Ledger) Hold(ctx context.Context, evidence []herald.Request, p herald.Pause) (held bool, err error) {
	if len(evidence) == 0 {
		return false, nil
	}
	tx, err := l.pool.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("remember silence: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	fresh, err := remember(ctx, tx, evidence)
	if err == nil && fresh > 0 {
		held, err = holdAll(ctx, tx, p)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return false, fmt.Errorf("remember silence: %w", err)
	}
	return held, nil
}

// remember counts the rows that were not known. IGNORE passes over known ones
// and is counted the same whatever the DSN says about found rows.
func remember(ctx context.Context, tx *sql.Tx, evidence []herald.Request) (fresh int64, err error) {
	for len(evidence) > 0 {
		some := evidence[:min(len(evidence), evidenceAtOnce)]
		evidence = evidence[len(some):]
		args := make([]any, 0, 2*len(some))
		for _, r := range some {
			args = append(args, r.PHID, r.Modified)
		}
		res, err := tx.ExecContext(ctx, "INSERT IGNORE INTO silence_evidence (request_phid, modified, seen_at) VALUES "+
			strings.Repeat("(?, ?, UTC_TIMESTAMP(3)),", len(some)-1)+"(?, ?, UTC_TIMESTAMP(3))", args...)
		if err != nil {
			return 0, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return 0, err
		}
		fresh += n
	}
	return fresh, nil
}

func holdAll(ctx context.Context, tx *sql.Tx, p herald.Pause) (held bool, err error) {
	if _, err := tx.ExecContext(ctx, forgetSQL); err != nil {
		return false, err
	}
	res, err := tx.ExecContext(ctx, "INSERT IGNORE INTO hook_pause (hook_phid, paused_at, paused_by, reason, released) "+
		"VALUES (?, ?, ?, ?, 0)", p.HookPHID, p.At.UTC(), cut(p.By, maxBy), cut(p.Reason, maxReason))
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, err
}
