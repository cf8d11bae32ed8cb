package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"

	"waybill/internal/config"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// tables are the two databases that commands read for people, with the rules
// that say what their rows mean.
type tables struct {
	rows   *heralddb.DB
	ledger *ledger.Ledger
	config config.Config
	lease  time.Duration
	now    func() time.Time
	pauses map[string]herald.Pause // by hook, ledger.AllHooks for all
	owners map[string]ledger.Owner // by hook
}

func openTables(j job) (*tables, error) { return openTablesTelling(j, nil) }

// openTablesTelling also tells of each table of objects that may not be read.
func openTablesTelling(j job, unreadable func(table string)) (*tables, error) {
	c := j.config.Herald
	if !c.Enabled() {
		return nil, &configError{errNoLane}
	}
	lease, _ := j.config.Lease()
	rows, err := heralddb.Open(heralddb.Config{
		DSN: soon(c.DSN), Namespace: c.Namespace, Lease: lease, Backoff: c.RetryBackoff,
		BreakerThreshold: c.BreakerThreshold, Clock: j.now, Unreadable: unreadable,
	})
	if err != nil {
		return nil, err
	}
	waybill, err := ledger.Open(soon(j.config.Ledger))
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &tables{rows: rows, ledger: waybill, config: j.config, lease: lease, now: j.now}, nil
}

// answerSoon bounds waiting for a database where somebody waits for the command,
// as temporalWithin does for Temporal. The slowest list measured took 0.7 s.
const answerSoon = 5 * time.Second

// soon is a data source for such a command; what the operator set in it holds.
func soon(d config.DSN) string {
	c := d.Driver()
	if c.ReadTimeout == 0 {
		c.ReadTimeout = answerSoon
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = answerSoon
	}
	return c.FormatDSN()
}

// errNoAnswer is said in place of the driver's words for a server that is silent.
var errNoAnswer = errors.New("it does not answer")

// unanswered says that a statement has gone out, or may have, and nothing came back.
func unanswered(err error) bool {
	var network net.Error
	return errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) ||
		(errors.As(err, &network) && network.Timeout())
}

// worded puts our words for the driver's.
func worded(err error) error {
	if unanswered(err) {
		return errNoAnswer
	}
	return err
}

// openWithOrders opens them and reads who paused and who owns what.
func openWithOrders(ctx context.Context, j job) (*tables, error) {
	t, err := openTables(j)
	if err != nil {
		return nil, err
	}
	if err := t.readOrders(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *tables) close() { _ = t.rows.Close(); _ = t.ledger.Close() }

// phorge marks an error of Phorge's database with the variable that leads there.
// The address is shown, of the password only that there is one.
func (t *tables) phorge(err error) error {
	if err == nil || errors.Is(err, herald.ErrGone) {
		return err
	}
	return fmt.Errorf("cannot read Phorge's database: WAYBILL_HERALD_DSN is %s: %w", t.config.Herald.DSN, worded(err))
}

// own does the same for Waybill's.
func (t *tables) own(err error) error { return own(t.config, err) }

// own marks an error of Waybill's database with its variable. Where the server
// lacks what a migration makes, its words would help nobody.
func own(c config.Config, err error) error {
	if ledger.Unprepared(err) {
		return fmt.Errorf("the tables of WAYBILL_DSN (%s) are missing, or an older version's: run `waybill migrate`", c.Ledger)
	}
	return ownAway(c, err)
}

// ownWrite is for a write: one without an answer may have been made.
func ownWrite(c config.Config, err error) error {
	if unanswered(err) {
		return fmt.Errorf("%w; the change may or may not have been made, `waybill hooks list` shows it", own(c, err))
	}
	return own(c, err)
}

// ownAway is for the migration itself, which cannot recommend itself.
func ownAway(c config.Config, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot use Waybill's own database: WAYBILL_DSN is %s: %w", c.Ledger, worded(err))
}

// readOrders reads who paused what and who owns what, for all hooks at once.
func (t *tables) readOrders(ctx context.Context) error {
	pauses, err := t.ledger.Pauses(ctx)
	if err != nil {
		return t.own(err)
	}
	owners, err := t.ledger.Owners(ctx)
	if err != nil {
		return t.own(err)
	}
	t.pauses, t.owners = make(map[string]herald.Pause, len(pauses)), make(map[string]ledger.Owner, len(owners))
	for _, p := range pauses {
		t.pauses[p.HookPHID] = p
	}
	for _, o := range owners {
		t.owners[o.HookPHID] = o
	}
	return nil
}

// pause is the order that holds a hook: its own goes before that for all hooks.
func (t *tables) pause(hook string) *herald.Pause {
	for _, phid := range []string{hook, ledger.AllHooks} {
		if p, ok := t.pauses[phid]; ok {
			return &p
		}
	}
	return nil
}

// breaker is until when the hook's breaker is open, 0 when it is closed.
func (t *tables) breaker(failure, now int64) int64 {
	wait := herald.Snapshot{ThresholdFailure: failure, Now: now}.BreakerWait(t.config.Herald.BreakerWindow)
	if wait == 0 {
		return 0
	}
	return now + seconds(wait)
}

// seconds counts a duration as the rows do; those of the configuration are whole.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }
