package scenario

import (
	"context"
	"crypto/sha1" //nolint:gosec // Phorge's names of locks are made with it
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
)

// Turn is what one run of Phorge's worker on one request came to.
type Turn string

// The ends of a turn.
const (
	// Archived: the row was not queued (any more); the task is done.
	Archived Turn = "archived"
	// Yielded: the hook's lock was not to be had; the task comes back in 15 s.
	Yielded Turn = "yielded"
	// Called: the hook was called and the result saved.
	Called Turn = "called"
)

// PhorgeWorker plays Phorge's own delivery: its order of checks, its lock with
// no wait on a connection of its own, its saves without a guard. Facts are from
// a real Phorge's behaviour; none of Waybill's code is in it.
type PhorgeWorker struct {
	phorge *devstack.Phorge
	conn   *sql.Conn
	client http.Client

	// Between, when set, is called after the row has been found queued and
	// before the lock is asked for: the gap in which Phorge can be overtaken.
	Between func()
	// During, when set, is called while the lock is held, before the call.
	During func()
}

// NewPhorgeWorker connects one taskmaster.
func NewPhorgeWorker(t testing.TB, p *devstack.Phorge) *PhorgeWorker {
	t.Helper()
	conn, err := p.DB.Conn(t.Context())
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	w := &PhorgeWorker{phorge: p, conn: conn, client: http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, Timeout: phorgeTimeout,
	}}
	t.Cleanup(func() { _ = w.conn.Close() })
	return w
}

// phorgeTimeout is how long Phorge waits for an answer.
const phorgeTimeout = 15 * time.Second

// CallerName is the player's User-Agent, by which receivers tell its calls
// from Waybill's.
const CallerName = "Arcanist (player)"

// Turn runs the worker once for a request.
func (w *PhorgeWorker) Turn(t testing.TB, requestPHID string) Turn {
	t.Helper()
	turn, err := w.Try(t.Context(), requestPHID)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return turn
}

// Try is Turn where the database may go away: the task then fails, wherever it
// is, and Phorge comes back to it.
func (w *PhorgeWorker) Try(ctx context.Context, requestPHID string) (Turn, error) {
	r, err := w.phorge.Row(ctx, requestPHID)
	if err != nil {
		return "", err
	}
	if r.Status != queued {
		return Archived, nil
	}
	if w.Between != nil {
		w.Between()
	}
	locked, err := w.ask(ctx, tryLock, r.HookPHID)
	if err != nil {
		return "", err
	}
	if !locked {
		return Yielded, nil
	}
	if w.During != nil {
		w.During()
	}
	err = w.call(ctx, r)
	_, unlocked := w.ask(ctx, unlock, r.HookPHID)
	return Called, errors.Join(err, unlocked)
}

// call posts and saves the row as Phorge does: by id, whatever has happened to
// it meanwhile.
func (w *PhorgeWorker) call(ctx context.Context, r devstack.Row) error {
	var uri string
	err := w.conn.QueryRowContext(ctx, "SELECT webhookURI FROM "+w.phorge.Database("herald")+
		".herald_webhook WHERE phid = ?", r.HookPHID).Scan(&uri)
	if err != nil {
		return err
	}
	status, result := "sent", "okay"
	if code := w.post(ctx, uri, r.PHID); code/100 != 2 {
		status, result = "failed", "fail"
	}
	_, err = w.conn.ExecContext(ctx, "UPDATE "+w.phorge.Database("herald")+".herald_webhookrequest"+
		" SET status = ?, lastRequestResult = ?, lastRequestEpoch = UNIX_TIMESTAMP(), dateModified = UNIX_TIMESTAMP()"+
		" WHERE id = ?", status, result, r.ID)
	return err
}

func (w *PhorgeWorker) post(ctx context.Context, uri, body string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, strings.NewReader(body))
	if err != nil {
		return 0
	}
	req.Header.Set("User-Agent", CallerName)
	res, err := w.client.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0
	}
	return res.StatusCode
}

// Lock asks for a hook's lock with no wait, as Phorge does, and says whether
// it was to be had.
func (w *PhorgeWorker) Lock(t testing.TB, hookPHID string) bool {
	t.Helper()
	return w.must(t, tryLock, hookPHID)
}

// Unlock gives the lock back.
func (w *PhorgeWorker) Unlock(t testing.TB, hookPHID string) {
	t.Helper()
	w.must(t, unlock, hookPHID)
}

// Held says whether anybody holds the hook's lock.
func (w *PhorgeWorker) Held(t testing.TB, hookPHID string) bool {
	t.Helper()
	return !w.must(t, "SELECT IS_FREE_LOCK(?)", hookPHID)
}

// What is asked of the lock's connection.
const (
	tryLock = "SELECT COALESCE(GET_LOCK(?, 0), 0)"
	unlock  = "SELECT COALESCE(RELEASE_LOCK(?), 0)"
)

func (w *PhorgeWorker) must(t testing.TB, query, hookPHID string) bool {
	t.Helper()
	yes, err := w.ask(t.Context(), query, hookPHID)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	return yes
}

// ask asks a yes or no about a hook's lock. After an error the connection is
// another one.
func (w *PhorgeWorker) ask(ctx context.Context, query, hookPHID string) (yes bool, err error) {
	if err = w.conn.QueryRowContext(ctx, query, LockName(w.phorge.Namespace, hookPHID)).Scan(&yes); err == nil {
		return yes, nil
	}
	if next, failed := w.phorge.DB.Conn(ctx); failed == nil {
		_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // its locks go with it
		_ = w.conn.Close()
		w.conn = next
	}
	return false, err
}

// LockName is Phorge's name for a hook's user lock in a storage namespace.
func LockName(namespace, hookPHID string) string {
	short := namespace[:min(7, len(namespace))]
	return fmt.Sprintf("ph:%s-%s:webhook-%s", short, digest(namespace), digest("webhook("+hookPHID+")()"))
}

// digest is Phorge's digest for names: 12 characters of the SHA-1 sum.
func digest(s string) string {
	const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._"
	sum := sha1.Sum([]byte(s)) //nolint:gosec // see the import
	name := make([]byte, 12)
	for i := range name {
		name[i] = alphabet[sum[i]&0x3f]
	}
	return string(name)
}
