package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/internal/ledger"
)

// The states of a hook, as `waybill hooks` shows them. The first that holds is
// the hook's.
const (
	hookGone       = "gone"       // rows wait, and the hook's own row is no more
	hookReleased   = "released"   // Phorge's own worker delivers
	hookPaused     = "paused"     // nobody delivers
	hookDisabled   = "disabled"   // switched off in Phorge: its rows are failed
	hookBreaker    = "breaker"    // too many failures lately
	hookUnowned    = "unowned"    // no process of Waybill delivers for it
	hookWaiting    = "waiting"    // its owner waits for calls of one that was cut off
	hookDelivering = "delivering" // everything is as it should be
)

// hookView is a hook as people and programs see it. The names are documented in
// docs/commands.md and stay.
type hookView struct {
	PHID   string  `json:"phid"`
	Name   string  `json:"name"`
	Status string  `json:"status"`
	State  string  `json:"state"`
	Queued int64   `json:"queued"`
	Flying int64   `json:"in_flight"`
	Oldest *moment `json:"oldest_queued_at"`

	Last    *resultView `json:"last_result"`
	Breaker breakerView `json:"breaker"`
	Pause   *pauseView  `json:"pause"`
	Owner   *string     `json:"owner"`
	// Waits is until when the owner sends nothing, null as a rule.
	Waits *moment `json:"waits_until"`

	now int64
}

type breakerView struct {
	Open  bool    `json:"open"`
	Until *moment `json:"until"`
}

type pauseView struct {
	Kind     string    `json:"kind"` // paused or released
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	AllHooks bool      `json:"all_hooks"`
}

// said is how a paused or released hook stands, in a line.
func (p *pauseView) said() string {
	line := "paused by " + p.By
	if p.Kind == hookReleased {
		line = "released to Phorge by " + p.By
	}
	if p.Reason != "" {
		line += ": " + p.Reason
	}
	if p.AllHooks {
		line += " (all hooks)"
	}
	return line
}

// moment is a second of the database's clock: RFC 3339 in UTC for programs.
type moment int64

// at is nil for never.
func at(second int64) *moment {
	if second == 0 {
		return nil
	}
	m := moment(second)
	return &m
}

// String is the moment in full.
func (m moment) String() string { return time.Unix(int64(m), 0).UTC().Format(time.RFC3339) }

// MarshalJSON writes what String says.
func (m moment) MarshalJSON() ([]byte, error) { return []byte(`"` + m.String() + `"`), nil }

// listHooks prints every hook with its state, queue and owner.
func listHooks(ctx context.Context, j job, asJSON bool) error {
	hooks, err := readHooks(ctx, j)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(j.stdout, hooks)
	}
	return hooksTable(hooks).write(j.stdout)
}

// showHook prints one of them.
func showHook(ctx context.Context, j job, phid string, asJSON bool) error {
	hooks, err := readHooks(ctx, j)
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if h.PHID != phid {
			continue
		}
		if asJSON {
			return writeJSON(j.stdout, h)
		}
		return writeHook(j.stdout, h)
	}
	return noHook(phid)
}

func readHooks(ctx context.Context, j job) ([]hookView, error) {
	t, err := openWithOrders(ctx, j)
	if err != nil {
		return nil, err
	}
	defer t.close()
	standings, err := t.rows.Standings(ctx)
	if err != nil {
		return nil, t.phorge(err)
	}
	hooks := make([]hookView, 0, len(standings))
	for _, s := range standings {
		hooks = append(hooks, t.viewHook(s))
	}
	return hooks, nil
}

// viewHook puts together what the two databases say.
func (t *tables) viewHook(s heralddb.Standing) hookView {
	until := t.breaker(s.ThresholdFailure, s.Now)
	h := hookView{
		PHID: s.PHID, Name: s.Name, Status: s.Status, Queued: s.Queued, Flying: s.InFlight, Oldest: at(s.Oldest),
		Last: lastResult(s), Breaker: breakerView{Open: until != 0, Until: at(until)},
		Pause: t.pauseView(s.PHID), now: s.Now,
	}
	if owner, owned := t.owners[s.PHID]; owned {
		h.Owner, h.Waits = &owner.Instance, at(waitsUntil(owner, s.Now))
	}
	h.State = hookState(h, s.Gone)
	return h
}

func (t *tables) pauseView(hook string) *pauseView { return viewPause(t.pause(hook)) }

func viewPause(p *herald.Pause) *pauseView {
	if p == nil {
		return nil
	}
	v := &pauseView{Kind: hookPaused, By: p.By, Reason: p.Reason, At: p.At.UTC(), AllHooks: p.HookPHID == ledger.AllHooks}
	if p.Released {
		v.Kind = hookReleased
	}
	return v
}

func hookState(h hookView, gone bool) string {
	switch {
	case gone:
		return hookGone
	case h.Pause != nil:
		return h.Pause.Kind
	case h.Status == "disabled":
		return hookDisabled
	case h.Breaker.Open:
		return hookBreaker
	case h.Owner == nil:
		return hookUnowned
	case h.Waits != nil:
		return hookWaiting
	}
	return hookDelivering
}

// waitsUntil is when a hook's owner begins to send, by the clock of Phorge's
// database; 0 when it does so already.
func waitsUntil(o ledger.Owner, now int64) int64 {
	if o.Waits == 0 {
		return 0
	}
	return now + int64(math.Ceil(o.Waits.Seconds()))
}

// lastResult is the newer of the hook's last success and last failure; where
// both are of one second, the failure, which wants a look.
func lastResult(s heralddb.Standing) *resultView {
	if s.Okay == 0 && s.Fail == 0 {
		return nil
	}
	if s.Okay > s.Fail {
		return &resultView{Result: "okay", At: at(s.Okay)}
	}
	r := viewResult("fail", s.Fail, s.Failure)
	return &r
}

// stateText is the state with what belongs to it.
func (h hookView) stateText() string {
	switch h.State {
	case hookPaused, hookReleased:
		return h.Pause.said()
	case hookBreaker:
		return "breaker open for " + span(int64(*h.Breaker.Until)-h.now)
	case hookWaiting:
		return "waiting " + span(int64(*h.Waits)-h.now) + ": its last owner was cut off"
	case hookGone:
		return "gone from Phorge"
	}
	return h.State
}

func (h hookView) breakerText() string {
	if !h.Breaker.Open {
		return "closed"
	}
	return "open until " + h.Breaker.Until.String()
}

func (h hookView) oldestText() string {
	if h.Oldest == nil {
		return ""
	}
	return span(h.now - int64(*h.Oldest))
}

func (h hookView) lastText() string {
	if h.Last == nil {
		return ""
	}
	return h.Last.ago(h.now)
}

func hooksTable(hooks []hookView) *table {
	t := &table{header: []string{"HOOK", "NAME", "STATE", "QUEUED", "OLDEST", "IN FLIGHT", "LAST RESULT", "BREAKER", "OWNER"}}
	// The breaker is last: one that is open is a state too.
	t.spare = []string{"NAME", "QUEUED", "LAST RESULT", "OLDEST", "IN FLIGHT", "OWNER", "BREAKER"}
	// So 80 columns have all up to the last result while all hooks deliver.
	t.least = map[string]int{"NAME": 12, "LAST RESULT": 12}
	t.all = "`waybill hooks show PHID`"
	for _, h := range hooks {
		t.add(h.PHID, h.Name, h.stateText(), count(h.Queued), h.oldestText(), count(h.Flying), h.lastText(),
			h.breakerText(), orNobody(h.Owner))
	}
	return t
}

func writeHook(w io.Writer, h hookView) error {
	p := &paragraph{}
	p.line("Hook", h.PHID)
	p.line("Name", h.Name)
	p.line("State", h.stateText())
	if h.Pause != nil {
		p.line("Since", h.Pause.At.Format(time.RFC3339))
	}
	p.line("In Phorge", h.Status)
	p.line("Queued", count(h.Queued))
	if h.Oldest != nil {
		p.line("Oldest", h.Oldest.String()+", "+h.oldestText()+" ago")
	}
	p.line("In flight", count(h.Flying))
	p.line("Last result", h.lastText())
	p.line("Breaker", h.breakerText())
	p.line("Owner", orNobody(h.Owner))
	return p.write(w)
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// span is a length of time in seconds, short enough for a column. A clock that
// was put back makes it negative, which would only confuse.
func span(seconds int64) string {
	s := max(seconds, 0)
	const day = 24 * 3600
	if s >= 2*day {
		return fmt.Sprintf("%dd%dh", s/day, s%day/3600)
	}
	return (time.Duration(s) * time.Second).String()
}
