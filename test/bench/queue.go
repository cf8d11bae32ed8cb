package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

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
	arrived   atomic.Int64
	calls     chan struct{}
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

// newQueue makes a Phorge of its own, so that no figure stands on another's rows.
func (s *stack) newQueue(ctx context.Context, hooks int) (*queue, error) {
	q := &queue{namespace: "bench" + devstack.RandomName(8), calls: make(chan struct{}, s.rows+s.idle)}
	q.receiver = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		q.arrived.Add(1)
		q.calls <- struct{}{}
	}))
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
	phorge := &devstack.Phorge{DB: root, Namespace: q.namespace}
	for i := range hooks {
		h, err := phorge.CreateHook(ctx, devstack.Hook{Name: fmt.Sprintf("bench %d", i), URI: q.receiver.URL + "/"})
		if err != nil {
			return nil, err
		}
		q.hooks = append(q.hooks, h.PHID)
	}
	return q, nil
}

func (q *queue) close() {
	q.receiver.Close()
	_ = q.db.Close()
}

// properties are those of an editor's row about an object whose tables are
// not known here: no look-ups that the plain loop does not make.
const properties = `{"retry":"never","transactionPHIDs":{"PHID-XACT-ABCD-aaaaaaaaaaaaaaa":"PHID-XACT-ABCD-aaaaaaaaaaaaaaa"},` +
	`"triggerPHIDs":["PHID-HRUL-aaaaaaaaaaaaaaaaaaaa"],"silent":false,"secure":false}`

// insert queues rows over the hooks in turn, in one statement and so at one
// moment.
func (q *queue) insert(ctx context.Context, n int) error {
	var b strings.Builder
	b.WriteString("INSERT INTO herald_webhookrequest (phid, webhookPHID, objectPHID, status, properties, lastRequestResult, lastRequestEpoch, dateCreated, dateModified) VALUES ")
	args := make([]any, 0, 3*n)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("(?, ?, 'PHID-ABCD-aaaaaaaaaaaaaaaaaaaa', 'queued', ?, 'none', 0, UNIX_TIMESTAMP(), UNIX_TIMESTAMP())")
		args = append(args, "PHID-HWBR-"+devstack.RandomName(20), q.hooks[i%len(q.hooks)], properties)
	}
	_, err := q.db.ExecContext(ctx, b.String(), args...)
	return err
}

// unfinished counts rows without a result.
func (q *queue) unfinished(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM herald_webhookrequest WHERE status <> 'sent'").Scan(&n)
	return n, err
}

func header(sig string) http.Header {
	return http.Header{"Content-Type": {"application/json"}, "X-Phabricator-Webhook-Signature": {sig}}
}
