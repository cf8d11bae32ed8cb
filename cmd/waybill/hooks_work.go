package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
	"waybill/workflows"
)

// queueShown bounds counting one hook's queue: beyond it the exact number does
// not change what an operator does.
const queueShown = 10000

// listHooks prints every hook with its state, queue and owner.
func listHooks(ctx context.Context, j job) error {
	l, err := openTables(j)
	if err != nil {
		return err
	}
	defer l.close()
	hooks, err := l.rows.Hooks(ctx)
	if err != nil {
		return err
	}
	owners, err := l.ownersByHook(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(j.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "HOOK\tNAME\tSTATE\tQUEUED\tOLDEST\tOWNER")
	for _, h := range hooks {
		row, err := l.describe(ctx, h, owners[h.PHID])
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(table, row)
	}
	return table.Flush()
}

// tables are the two databases that listing reads.
type tables struct {
	rows   *heralddb.DB
	ledger *ledger.Ledger
	now    func() time.Time
}

func openTables(j job) (*tables, error) {
	if !j.config.Herald.Enabled() {
		return nil, &configError{errNoLane}
	}
	rows, err := heralddb.Open(heralddb.Config{
		DSN: j.config.Herald.DSN.Driver().FormatDSN(), Namespace: j.config.Herald.Namespace, Clock: j.now,
	})
	if err != nil {
		return nil, err
	}
	own, err := ledger.Open(j.config.Ledger.Driver().FormatDSN())
	return &tables{rows: rows, ledger: own, now: j.now}, err
}

func (t *tables) close() { _ = t.rows.Close(); _ = t.ledger.Close() }

func (t *tables) ownersByHook(ctx context.Context) (map[string]string, error) {
	owners, err := t.ledger.Owners(ctx)
	byHook := make(map[string]string, len(owners))
	for _, o := range owners {
		byHook[o.HookPHID] = o.Instance
	}
	return byHook, err
}

// describe is one line of the list.
func (t *tables) describe(ctx context.Context, h heralddb.HookName, owner string) (string, error) {
	n, oldest, err := t.rows.Queued(ctx, h.PHID, queueShown)
	if err != nil {
		return "", err
	}
	pause, err := t.ledger.Paused(ctx, h.PHID)
	if err != nil {
		return "", err
	}
	state := h.Status
	if pause != nil {
		state = fmt.Sprintf("paused by %s: %s", pause.By, pause.Reason)
	}
	queued := fmt.Sprint(n)
	if n == queueShown {
		queued += "+"
	}
	age := "-"
	if n > 0 {
		age = t.now().Sub(time.Unix(oldest, 0)).Round(time.Second).String()
	}
	if owner == "" {
		owner = "nobody"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", h.PHID, h.Name, state, queued, age, owner), nil
}

// pauseHooks signals the hooks' workflows; --all goes straight into the table
// that admission reads, and so holds for hooks that do not exist yet.
func pauseHooks(ctx context.Context, j job, c hookChange) error {
	by := c.by
	if by == "" {
		by = "an operator"
	}
	if c.all {
		return withLedger(j, func(l *ledger.Ledger) error {
			return l.SetPause(ctx, herald.Pause{HookPHID: ledger.AllHooks, At: j.now(), By: by, Reason: c.reason})
		}, "All hooks are paused.")
	}
	return signalHooks(ctx, j, c.phids, workflows.SignalPause, map[string]string{"by": by, "reason": c.reason})
}

// resumeHooks is the way back.
func resumeHooks(ctx context.Context, j job, c hookChange) error {
	if c.all {
		return withLedger(j, func(l *ledger.Ledger) error { return l.ClearPause(ctx, ledger.AllHooks) },
			"The pause of all hooks is over. Hooks paused by name stay paused.")
	}
	return signalHooks(ctx, j, c.phids, workflows.SignalResume, nil)
}

func withLedger(j job, do func(*ledger.Ledger) error, done string) error {
	l, err := ledger.Open(j.config.Ledger.Driver().FormatDSN())
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := do(l); err != nil {
		return err
	}
	say(j.stdout, "%s", done)
	return nil
}

// signalHooks tells each hook's workflow; it goes on after a failure and
// reports all of them.
func signalHooks(ctx context.Context, j job, phids []string, signal string, arg any) error {
	temporal, err := dialTemporal(ctx, j)
	if err != nil {
		return err
	}
	defer temporal.Close()
	var failures []error
	for _, phid := range phids {
		if err := signalHook(ctx, temporal, phid, signal, arg); err != nil {
			failures = append(failures, err)
			continue
		}
		say(j.stdout, "%s: %s sent.", phid, signal)
	}
	return errors.Join(failures...)
}

func signalHook(ctx context.Context, temporal client.Client, phid, signal string, arg any) error {
	err := temporal.SignalWorkflow(ctx, workflows.HookID(phid), "", signal, arg)
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return fmt.Errorf("%s: no such hook is known to Temporal; `waybill hooks list` shows the hooks", phid)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", phid, err)
	}
	return nil
}
