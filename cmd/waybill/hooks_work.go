package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/serviceerror"

	"waybill/internal/columns"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
	"waybill/workflows"
)

// pauseHooks writes into the table that admission reads; --all holds for hooks
// that do not exist yet.
func pauseHooks(ctx context.Context, j job, c hookChange) error {
	return orderHooks(ctx, j, c, order{
		pause: c.pause(j.now()),
		done:  "All hooks are paused; those released by name stay released.",
	})
}

// releaseHooks does the same, and workers let go of the hooks.
func releaseHooks(ctx context.Context, j job, c hookChange) error {
	p := c.pause(j.now())
	p.Released = true
	return orderHooks(ctx, j, c, order{
		pause: p,
		done:  "All hooks are released to Phorge, once attempts under way are over; those paused by name stay paused.",
	})
}

// pause is what the change comes to in the pause table, for all hooks.
func (c hookChange) pause(at time.Time) herald.Pause {
	p := herald.Pause{HookPHID: ledger.AllHooks, At: at, By: c.by, Reason: c.reason}
	if p.By == "" {
		p.By = "an operator"
	}
	return p
}

// order is a pause or a release: what stands in the table, and what is said when
// it was given for all hooks.
type order struct {
	pause herald.Pause
	done  string
}

func orderHooks(ctx context.Context, j job, c hookChange, o order) error {
	if c.all {
		return withLedger(j, func(l *ledger.Ledger) error { return l.SetPause(ctx, o.pause) }, o.done)
	}
	return changeHooks(ctx, j, c.phids, func(l *ledger.Ledger, phid string) (string, error) {
		p := o.pause
		p.HookPHID = phid
		return "not paused: it was resumed at the same time.", l.SetPause(ctx, p)
	})
}

// resumeHooks is the way back.
func resumeHooks(ctx context.Context, j job, c hookChange) error {
	if c.all {
		return withLedger(j, func(l *ledger.Ledger) error { _, err := l.ClearPause(ctx, ledger.AllHooks); return err },
			"The pause or release of all hooks is over. Hooks paused or released by name stay so.")
	}
	return changeHooks(ctx, j, c.phids, func(l *ledger.Ledger, phid string) (string, error) {
		ended, err := l.ClearPause(ctx, phid)
		if ended {
			return "resumed.", err
		}
		return "was not paused.", err
	})
}

func withLedger(j job, do func(*ledger.Ledger) error, done string) error {
	l, err := ledger.Open(soon(j.config.Ledger))
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	if err := do(l); err != nil {
		return ownWrite(j.config, err)
	}
	say(j.stdout, "%s", done)
	return nil
}

// change is a pause, a release or a resume: the write into the table that
// admission reads. It holds from the first moment, whether or not Temporal or a
// worker is there. It says how a hook stands that nothing holds then.
type change func(l *ledger.Ledger, phid string) (free string, err error)

// changeHooks also tells the hooks' workflows to look at the table; they do not
// write it, because they may come to it late, when another order stands there.
// It goes on after a failure and reports all of them.
func changeHooks(ctx context.Context, j job, phids []string, c change) error {
	t, err := openTables(j)
	if err != nil {
		return err
	}
	defer t.close()
	// Where Phorge's database cannot say which hooks there are, a pause must not
	// depend on it.
	hooks, away := t.rows.Hooks(ctx)
	var changed []string
	var failures []error
	for _, phid := range phids {
		var err error
		var free string
		if away == nil && !slices.ContainsFunc(hooks, func(h heralddb.HookName) bool { return h.PHID == phid }) {
			err = t.ordered(ctx, phid)
		}
		if err == nil {
			free, err = c(t.ledger, phid)
			err = ownWrite(t.config, err)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		changed = append(changed, phid)
		say(j.stdout, "%s: %s", phid, standing(ctx, t.ledger, phid, free))
	}
	if err := refreshHooks(ctx, j, changed); err != nil {
		say(j.stderr, "That holds. The hooks' pages in Temporal do not show it yet: %v", err)
	}
	return errors.Join(failures...)
}

// ordered refuses a hook that Phorge does not know, unless an order stands for it.
func (t *tables) ordered(ctx context.Context, phid string) error {
	pauses, err := t.ledger.Pauses(ctx)
	if err != nil || slices.ContainsFunc(pauses, func(p herald.Pause) bool { return p.HookPHID == phid }) {
		return t.own(err)
	}
	return noHook(phid)
}

func noHook(phid string) error {
	return fmt.Errorf("%s: no such hook; `waybill hooks list` shows the hooks", phid)
}

// standing says how a hook stands after the change: not always as asked for,
// because an earlier pause, or one of all hooks, stands.
func standing(ctx context.Context, l *ledger.Ledger, phid, free string) string {
	p, err := l.Paused(ctx, phid)
	switch {
	case err != nil:
		return "done; how it stands could not be read."
	case p == nil:
		return free
	case p.HookPHID == ledger.AllHooks:
		return p.Verb() + " with all hooks; `waybill hooks resume --all` ends that."
	}
	return columns.Plain(viewPause(p).said())
}

// refreshHooks lets the hooks' workflows show what was changed. One that does not
// run reads the table when it does.
func refreshHooks(ctx context.Context, j job, phids []string) error {
	if len(phids) == 0 {
		return nil
	}
	temporal, err := soonTemporal(ctx, j)
	if err != nil {
		return err
	}
	defer temporal.Close()
	var failures []error
	for _, phid := range phids {
		err := temporal.SignalWorkflow(ctx, workflows.HookID(phid), "", workflows.SignalRefresh, nil)
		var none *serviceerror.NotFound
		if err != nil && !errors.As(err, &none) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}
