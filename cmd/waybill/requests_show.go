package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
)

// requestPage is everything about one request.
type requestPage struct {
	requestView
	Retry        string       `json:"retry"` // forever or never
	Test         bool         `json:"test"`
	Silent       bool         `json:"silent"`
	Secure       bool         `json:"secure"`
	Transactions []string     `json:"transactions"`
	Triggers     []string     `json:"triggers"`
	HookName     string       `json:"hook_name"`
	HookStatus   string       `json:"hook_status"`
	Owner        *string      `json:"owner"`
	Outlook      string       `json:"outlook"`
	Workflow     workflowView `json:"workflow"`
}

// showRequest prints the row and, where Temporal answers, its workflow.
func showRequest(ctx context.Context, j job, name string, asJSON bool) error {
	t, err := openWithOrders(ctx, j)
	if err != nil {
		return err
	}
	defer t.close()
	row, err := t.request(ctx, name)
	if err != nil {
		return err
	}
	page, err := t.page(ctx, row)
	if err != nil {
		return err
	}
	page.Workflow = askTemporal(ctx, j, row.PHID)
	if asJSON {
		return writeJSON(j.stdout, page)
	}
	return page.write(j.stdout)
}

// request finds a row by PHID or number.
func (t *tables) request(ctx context.Context, name string) (heralddb.Listed, error) {
	phid := name
	id, numbered := requestID(name)
	if numbered {
		phid = ""
	}
	row, err := t.rows.Request(ctx, phid, id)
	if errors.Is(err, herald.ErrGone) {
		return row, gone(name)
	}
	return row, t.phorge(err)
}

// noRow is a request that is not in the table, by the name it was asked for.
type noRow struct{ name string }

func (e *noRow) Error() string {
	return e.name + ": Phorge's table has no such request; it may have been collected, as Phorge does after seven days"
}

// Is makes it herald.ErrGone.
func (e *noRow) Is(target error) bool { return target == herald.ErrGone }

func gone(name string) error {
	return &noRow{name}
}

// page reads the hook that belongs to the row and says what follows from both.
func (t *tables) page(ctx context.Context, row heralddb.Listed) (*requestPage, error) {
	o, err := t.outlook(ctx, row)
	if err != nil {
		return nil, err
	}
	p := &requestPage{requestView: t.viewRequest(row), Retry: "never", Transactions: []string{}, Triggers: []string{}}
	known := knownProperties(row.Properties)
	if s, ok := known.Retry.(string); ok && s == "forever" {
		p.Retry = s
	}
	p.Test, p.Silent, p.Secure = set(known.Test), set(known.Silent), set(known.Secure)
	p.Transactions, p.Triggers = append(p.Transactions, known.Transactions...), append(p.Triggers, known.Triggers...)
	if o.hook != nil {
		p.HookName, p.HookStatus = o.hook.Name, o.hook.Status
	}
	if o.owner != "" {
		p.Owner = &o.owner
	}
	text, from := o.next()
	p.Outlook, p.Next = text, at(from)
	return p, nil
}

// set is a flag as people mean it; PHP's own truth has more shades.
func set(flag any) bool { return flag != nil && flag != false && flag != "" && flag != 0.0 }

// outlook gathers what decides about the row.
func (t *tables) outlook(ctx context.Context, row heralddb.Listed) (outlook, error) {
	owner := t.owners[row.HookPHID]
	o := outlook{
		row: row, owner: owner.Instance, begins: waitsUntil(owner, row.Now), lease: seconds(t.lease), backoff: t.backoff(),
	}
	s, err := t.rows.Load(ctx, row.ID)
	if errors.Is(err, herald.ErrGone) {
		return o, gone(row.PHID)
	}
	if err != nil {
		return o, t.phorge(err)
	}
	o.hook, o.until, o.pause = s.Hook, t.breaker(s.ThresholdFailure, s.Now), t.pauseView(row.HookPHID)
	return o, nil
}

func (p *requestPage) write(w io.Writer) error {
	text := &paragraph{}
	text.line("Request", fmt.Sprintf("%s (number %d)", p.PHID, p.ID))
	text.line("Hook", strings.TrimSpace(p.Hook+" "+p.HookName)+" ("+orDash(p.HookStatus)+")")
	text.line("Object", p.Object)
	text.line("State", p.State)
	if p.Last != nil {
		text.line("Last result", p.lastText())
	}
	text.line("Created", p.createdText())
	text.line("After a failure", map[string]string{"forever": "tried again, without end", "never": "not tried again"}[p.Retry])
	text.line("Flags", p.flags())
	text.line("Transactions", strings.Join(p.Transactions, " "))
	text.line("Triggers", strings.Join(p.Triggers, " "))
	text.line("Owner", orNobody(p.Owner))
	text.line("Next", p.Outlook)
	p.Workflow.lines(text)
	if err := text.write(w); err != nil {
		return err
	}
	return p.Workflow.write(w)
}

func (p *requestPage) createdText() string {
	if p.Created == nil {
		return "-"
	}
	return p.Created.String() + ", " + p.ageText() + " ago"
}

func (p *requestPage) flags() string {
	var flags []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"test", p.Test}, {"silent", p.Silent}, {"secure", p.Secure}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return strings.Join(flags, ", ")
}

func orDash(text string) string {
	if text == "" || text == "<nil>" {
		return "-"
	}
	return text
}

func orNobody(owner *string) string {
	if owner == nil {
		return "nobody"
	}
	return *owner
}

// utc is a moment of Temporal's for a column.
func utc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
