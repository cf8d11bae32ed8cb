package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"waybill/internal/config"
	"waybill/internal/doctor"
	"waybill/internal/egress"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// patient is what is examined.
type patient struct {
	*tables
	job   job
	watch time.Duration
	// unreadable are the tables of objects that were come across.
	unreadable []string
}

// examine makes the checks one after the other. One that cannot be made is a
// problem of its own and no reason to leave out the rest, unless nothing at all
// can be read.
func examine(ctx context.Context, j job, e examination) ([]doctor.Finding, error) {
	p := &patient{job: j, watch: e.watch}
	var err error
	p.tables, err = openTablesTelling(j, func(table string) { p.unreadable = append(p.unreadable, table) })
	if err != nil {
		return nil, err
	}
	defer p.close()
	findings, err := p.phorgeItself(ctx)
	if err != nil {
		return append(findings, failedCheck(doctor.CheckPhorge, p.phorge(err))), nil
	}
	for _, c := range []struct {
		name string
		look func(context.Context) ([]doctor.Finding, error)
	}{
		{doctor.CheckOwn, p.waybillItself}, {doctor.CheckTables, p.schema}, {doctor.CheckGrants, p.rights},
		{doctor.CheckQueue, p.queue}, {doctor.CheckRows, p.oddRows}, {doctor.CheckSilence, p.silence},
		{doctor.CheckAddresses, p.addresses}, {doctor.CheckLocks, p.lockServer}, {doctor.CheckConsumers, p.consumers},
	} {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found, err := c.look(ctx)
		findings = append(findings, found...)
		if err != nil {
			findings = append(findings, failedCheck(c.name, err))
		}
	}
	return findings, nil
}

func failedCheck(check string, err error) doctor.Finding {
	return doctor.Finding{Check: check, Level: doctor.Problem, Text: "This could not be looked at: " + err.Error()}
}

// phorgeItself: the server answers; what it is and what time it has.
func (p *patient) phorgeItself(ctx context.Context) ([]doctor.Finding, error) {
	asked := p.now()
	version, clock, err := p.rows.Server(ctx)
	if err != nil {
		return nil, err
	}
	took := p.now().Sub(asked)
	return []doctor.Finding{
		{Check: doctor.CheckPhorge, Level: doctor.OK, Text: fmt.Sprintf("%s at %s.", doctor.Version(version), p.config.Herald.DSN.Address())},
		doctor.Clock(clock.Sub(asked.Add(took/2)), took/2),
	}, nil
}

// waybillItself: its own database and Temporal. Before the handover neither needs
// to be there.
func (p *patient) waybillItself(ctx context.Context) ([]doctor.Finding, error) {
	temporal, err := soonTemporal(ctx, p.job)
	if err == nil {
		temporal.Close()
	}
	return []doctor.Finding{
		needed(p.readOrders(ctx), "Waybill's own tables are there."),
		needed(err, "Temporal answers at "+p.config.Temporal.Address+"."),
	}, nil
}

// needed is what Waybill will need, and may lack until it starts.
func needed(err error, there string) doctor.Finding {
	if err != nil {
		return doctor.Finding{Check: doctor.CheckOwn, Level: doctor.Warning, Text: err.Error(), Advice: "Needed before Waybill starts."}
	}
	return doctor.Finding{Check: doctor.CheckOwn, Level: doctor.OK, Text: there}
}

func (p *patient) schema(ctx context.Context) ([]doctor.Finding, error) {
	columns, err := p.rows.Columns(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := p.rows.Keys(ctx)
	if err != nil {
		return nil, err
	}
	s := doctor.Schema{Columns: map[string]map[string]string{}, Keys: map[string]map[string][]string{}}
	for _, c := range columns {
		if s.Columns[c.Table] == nil {
			s.Columns[c.Table] = map[string]string{}
		}
		s.Columns[c.Table][c.Name] = c.Type
	}
	for _, k := range keys {
		if s.Keys[k.Table] == nil {
			s.Keys[k.Table] = map[string][]string{}
		}
		s.Keys[k.Table][k.Key] = append(s.Keys[k.Table][k.Key], k.Column)
	}
	return append(doctor.Tables(s), doctor.Keys(s)...), nil
}

// rights asks for each by doing nothing with it.
func (p *patient) rights(ctx context.Context) ([]doctor.Finding, error) {
	number, err := p.rows.MayWrite(ctx)
	if err != nil {
		return nil, err
	}
	return []doctor.Finding{doctor.Write(number, p.config.Herald.DSN.Driver().DBName)}, nil
}

func (p *patient) queue(ctx context.Context) ([]doctor.Finding, error) {
	waiting, oldest, err := p.rows.Backlog(ctx)
	if err != nil {
		return nil, err
	}
	return []doctor.Finding{
		doctor.Queue(waiting, oldest),
		doctor.Load(waiting, p.config.Herald.Takeover == config.TakeoverExternal),
	}, nil
}

// examinedRows of the queue are read one by one, the newest.
const examinedRows = 10_000

// oddRows also comes across the objects' tables that may not be read.
func (p *patient) oddRows(ctx context.Context) ([]doctor.Finding, error) {
	waiting, err := p.rows.Requests(ctx, heralddb.Filter{Limit: examinedRows, States: []heralddb.State{
		heralddb.StateQueued, heralddb.StateClaimed, heralddb.StateResting, heralddb.StateDue, heralddb.StateUnknown,
	}})
	if err != nil {
		return nil, err
	}
	hooks, err := p.rows.Hooks(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(hooks))
	for _, h := range hooks {
		known[h.PHID] = true
	}
	odd, types := doctor.OddRows{}, map[string]bool{}
	for _, r := range waiting {
		types[herald.ObjectType(r.ObjectPHID)] = true
		if what := oddity(r, known[r.HookPHID], seconds(p.lease)); what != "" {
			odd[what] = append(odd[what], r.PHID)
		}
	}
	if err := p.readObjects(ctx, types); err != nil {
		return nil, err
	}
	return append(doctor.Rows(odd, len(waiting)), doctor.Objects(p.unreadable)), nil
}

// oddity says what is odd about a row that waits, as a phrase behind a number of rows.
func oddity(r heralddb.Listed, known bool, lease int64) string {
	switch {
	case r.State == heralddb.StateUnknown:
		return "with a status or a result that Phorge does not write"
	case !known:
		return "of a hook that Phorge does not have any more"
	case farAhead(r, lease):
		return "dated more than a day ahead"
	}
	if _, err := herald.ParseProperties(r.Properties); err != nil {
		return "whose properties cannot be processed"
	}
	return ""
}

// readObjects asks each table that belongs to these types for nothing.
func (p *patient) readObjects(ctx context.Context, types map[string]bool) error {
	for kind := range types {
		tables, _ := herald.Tables(kind)
		if tables.Object != nil {
			if _, err := p.rows.Object(ctx, *tables.Object, ""); err != nil {
				return err
			}
		}
		if tables.Transactions != nil {
			if _, _, err := p.rows.Transactions(ctx, *tables.Transactions, "", []string{""}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *patient) silence(ctx context.Context) ([]doctor.Finding, error) {
	silenced, err := p.rows.Silenced(ctx)
	if err != nil {
		return nil, err
	}
	// Without Waybill's own tables nothing is held, and nothing sent.
	return []doctor.Finding{doctor.Silence(len(silenced), p.pause("") != nil)}, nil
}

// resolvedAtOnce names are asked for at a time, each for a few seconds at most.
const (
	resolvedAtOnce = 16
	resolvedWithin = 5 * time.Second
)

func (p *patient) addresses(ctx context.Context) ([]doctor.Finding, error) {
	hooks, err := p.rows.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	out := egress.New(egress.Config{Policy: outbound(p.config.Herald)})
	var mu sync.Mutex
	var denied, unresolved, malformed []string
	var all sync.WaitGroup
	free := make(chan struct{}, resolvedAtOnce)
	for _, h := range hooks {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			list := &malformed
			var fault *egress.Fault
			if target, err := herald.ParseURI(h.URI); err == nil {
				ctx, cancel := context.WithTimeout(ctx, resolvedWithin)
				defer cancel()
				if fault = out.Reaches(ctx, target.Hostname); fault == nil {
					return
				}
				if list = &unresolved; fault.Denied {
					list = &denied
				}
			}
			mu.Lock()
			defer mu.Unlock()
			*list = append(*list, h.PHID)
		})
	}
	all.Wait()
	return doctor.Addresses(denied, unresolved, malformed, len(hooks)), nil
}
