// Command demo plays, for docker-compose.yml, what stands around a Waybill: a
// Phorge that keeps queueing requests, and the receivers that its hooks call.
// `waybill dev` does the same for one machine; this does it on somebody else's
// database server.
//
// It creates the demo Phorge's tables where they are missing and grants a user
// what the README says Waybill needs, and nothing beyond. It is for
// demonstrations: its endpoints fail and hang on purpose.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/devstack"
)

// namespace is the demo Phorge's storage namespace. The compose file and the
// SQL of its database server name it too.
const namespace = "demo"

// connectEvery spaces the tries to reach a database server that starts at the
// same time and first makes its files, which takes it half a minute.
const connectEvery = time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout, time.Now); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// run plays until ctx ends, which is no error.
func run(ctx context.Context, getenv func(string) string, out io.Writer, now func() time.Time) error {
	s, err := read(getenv)
	if err != nil {
		return err
	}
	db := sql.OpenDB(s.server)
	defer func() { _ = db.Close() }()
	if !reach(ctx, db, out) {
		return nil
	}
	if err := s.prepare(ctx, db); err != nil {
		return err
	}
	receiver, err := devstack.StartReceiver(ctx, devstack.ReceiverConfig{Addr: s.listen, Clock: now, OnCall: shown(out)})
	if err != nil {
		return err
	}
	defer func() { _ = receiver.Close() }()
	demo, err := devstack.NewDemo(ctx, devstack.DemoConfig{
		Phorge: &devstack.Phorge{DB: db, Namespace: namespace}, Receiver: receiver,
	})
	if err != nil {
		return err
	}
	if _, err := demo.Enqueue(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "queueing; hooks call %s\n", receiver.Addr())
	return demo.Run(ctx)
}

// settings are what the environment says.
type settings struct {
	server driver.Connector // no database selected
	listen string           // host:port of the receivers, as the hooks will call them
	user   string           // who gets Waybill's rights; empty: nobody
}

// read takes DEMO_DSN, DEMO_LISTEN and DEMO_GRANT_TO.
func read(getenv func(string) string) (settings, error) {
	dsn, err := mysql.ParseDSN(getenv("DEMO_DSN"))
	if err != nil || getenv("DEMO_DSN") == "" {
		return settings{}, errors.New("DEMO_DSN must be a data source without a database, for example demo:PASSWORD@tcp(mysql:3306)/")
	}
	connector, err := mysql.NewConnector(dsn)
	if err != nil {
		return settings{}, errors.New("DEMO_DSN cannot be used")
	}
	return settings{server: connector, listen: getenv("DEMO_LISTEN"), user: getenv("DEMO_GRANT_TO")}, nil
}

// reach waits for the server; false when ctx ended first.
func reach(ctx context.Context, db *sql.DB, out io.Writer) bool {
	for said := false; ; said = true {
		err := db.PingContext(ctx)
		if err == nil {
			return true
		}
		if !said {
			fmt.Fprintln(out, "waiting for the database server")
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(connectEvery):
		}
	}
}

// prepare makes the demo Phorge and lets Waybill at it, no further than the
// README asks for.
func (s settings) prepare(ctx context.Context, db *sql.DB) error {
	if err := devstack.CreatePhorge(ctx, db, namespace); err != nil {
		return err
	}
	if s.user == "" {
		return nil
	}
	for _, right := range rights() {
		if _, err := db.ExecContext(ctx, "GRANT "+right+" TO "+account(s.user)); err != nil {
			return fmt.Errorf("grant %s: %w", right, err)
		}
	}
	return nil
}

// account quotes a user's name; placeholders do not reach that part of SQL.
func account(user string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(user, `\`, `\\`), "'", "''") + "'@'%'"
}

// rights are the README's, the optional ones included.
func rights() []string {
	return []string{
		"SELECT ON " + namespace + "_herald.herald_webhook",
		"SELECT, UPDATE ON " + namespace + "_herald.herald_webhookrequest",
		"SELECT ON " + namespace + "_maniphest.maniphest_task",
		"SELECT ON " + namespace + "_maniphest.maniphest_transaction",
	}
}

// shown prints one line per call.
func shown(out io.Writer) func(devstack.Received) {
	return func(r devstack.Received) {
		signature := "signature ok"
		if !r.Verified {
			signature = "SIGNATURE WRONG"
		}
		answer := fmt.Sprint(r.Status)
		if r.Status == 0 {
			answer = "no answer"
		}
		fmt.Fprintf(out, "%s  %-8s %-9s  %s  %s\n", r.At.Format(time.TimeOnly), r.Endpoint, answer, signature, r.ObjectPHID)
	}
}
