package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
)

// queue is one Phorge with hooks that call a receiver of their own.
type queue struct {
	db        *sql.DB
	namespace string
	dsn       string
	hooks     []string
	receiver  *httptest.Server
	// arrived counts calls that were taken, refused those that were not; sound
	// are the taken ones of the first hooks, none of whose rows fail in a flood.
	arrived, refused, sound atomic.Int64
	calls                   chan struct{}
}

func (s *stack) open(db string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(s.mariadb.DSN(db))
	if err != nil {
		return nil, err
	}
	cfg.InterpolateParams = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// newQueue makes a Phorge of its own, so that no figure stands on another's
// rows. Its receiver takes as long as told for each call, and refuses rows about
// objects of the failing type.
func (s *stack) newQueue(ctx context.Context, hooks int, takes time.Duration) (*queue, error) {
	q := &queue{namespace: "bench" + devstack.RandomName(8), calls: make(chan struct{}, 1000)}
	q.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { q.answer(w, r, takes) }))
	root, err := s.open("")
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if err := devstack.CreatePhorge(ctx, root, q.namespace); err != nil {
		return nil, err
	}
	q.dsn = s.mariadb.DSN(q.namespace + "_herald")
	if q.db, err = s.open(q.namespace + "_herald"); err != nil {
		return nil, err
	}
	return q, q.addHooks(ctx, hooks)
}

func (q *queue) answer(w http.ResponseWriter, r *http.Request, takes time.Duration) {
	body, err := io.ReadAll(r.Body)
	if err != nil || bytes.Contains(body, []byte(failing)) {
		q.refused.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if takes > 0 {
		time.Sleep(takes)
	}
	q.arrived.Add(1)
	if hook, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil && hook < soundHooks {
		q.sound.Add(1)
	}
	select {
	case q.calls <- struct{}{}:
	default: // somebody waits for the rows instead
	}
}

func (q *queue) addHooks(ctx context.Context, n int) error {
	var b strings.Builder
	b.WriteString("INSERT INTO herald_webhook (phid, name, webhookURI, viewPolicy, editPolicy, status, hmacKey, dateCreated, dateModified) VALUES ")
	var args []any
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("(?, ?, ?, 'users', 'users', 'enabled', ?, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())")
		phid := devstack.NewPHID("HWBH")
		q.hooks = append(q.hooks, phid)
		args = append(args, phid, fmt.Sprintf("bench %d", i), fmt.Sprintf("%s/%d", q.receiver.URL, i), devstack.RandomName(32))
	}
	_, err := q.db.ExecContext(ctx, b.String(), args...)
	return err
}

func (q *queue) close() {
	q.receiver.Close()
	_ = q.db.Close()
}

// Objects of types that are not known here: no look-ups that the plain loop
// does not make.
const (
	healthy = "PHID-ABCD-aaaaaaaaaaaaaaaaaaaa"
	failing = "PHID-FAIL-aaaaaaaaaaaaaaaaaaaa"
)

// properties are those of an editor's row, which is never retried, or for ever.
const properties = `{"retry":"%s","transactionPHIDs":{"PHID-XACT-ABCD-aaaaaaaaaaaaaaa":"PHID-XACT-ABCD-aaaaaaaaaaaaaaa"},` +
	`"triggerPHIDs":["PHID-HRUL-aaaaaaaaaaaaaaaaaaaa"],"silent":false,"secure":false}`

// row is a row to be inserted, as far as rows differ here.
type row struct {
	hook                          int
	object, retry, status, result string
	epoch                         int64
}

// queued is a row that waits for its first attempt.
func queued(hook int) row {
	return row{hook: hook, object: healthy, retry: "never", status: "queued", result: "none"}
}

// perStatement bounds one INSERT, well below the server's largest packet.
const perStatement = 5000

// fill inserts n rows, in statements of at most perStatement: up to that many
// become visible at one moment.
func (q *queue) fill(ctx context.Context, n int, of func(i int) row) error {
	for from := 0; from < n; from += perStatement {
		var b strings.Builder
		b.WriteString("INSERT INTO herald_webhookrequest (phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch, dateCreated, dateModified) VALUES ")
		var args []any
		for i := from; i < min(from+perStatement, n); i++ {
			if i > from {
				b.WriteString(",")
			}
			b.WriteString("(?, ?, ?, ?, ?, ?, ?, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())")
			r := of(i)
			args = append(args, "PHID-HWBR-"+devstack.RandomName(20), q.hooks[r.hook%len(q.hooks)], r.object, r.status,
				fmt.Sprintf(properties, r.retry), r.result, r.epoch)
		}
		if _, err := q.db.ExecContext(ctx, b.String(), args...); err != nil {
			return err
		}
	}
	return nil
}

// insert queues rows over the hooks in turn.
func (q *queue) insert(ctx context.Context, n int) error { return q.fill(ctx, n, queued) }

// count counts rows, with a condition.
func (q *queue) count(ctx context.Context, where string) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM herald_webhookrequest WHERE "+where).Scan(&n)
	return n, err
}

func header(sig string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Phabricator-Webhook-Signature": {sig}}
}
