package main

import (
	"context"
	"slices"

	"waybill/internal/heralddb"
)

// requestView is a row as people and programs see it. The names are documented
// in docs/commands.md and stay.
type requestView struct {
	PHID    string      `json:"phid"`
	ID      uint64      `json:"id"`
	Hook    string      `json:"hook"`
	Object  string      `json:"object"`
	State   string      `json:"state"`
	Status  string      `json:"status"`
	Created *moment     `json:"created_at"`
	Last    *resultView `json:"last_result"`
	// Next is the earliest moment of the next attempt, where the row has one.
	Next *moment `json:"next_attempt_at"`

	now int64
}

// listRequests prints the rows that a filter chooses.
func listRequests(ctx context.Context, j job, l listing) error {
	t, err := openTables(j)
	if err != nil {
		return err
	}
	defer t.close()
	filter := heralddb.Filter{HookPHID: l.hook, Limit: l.limit}
	for _, s := range l.states {
		filter.States = append(filter.States, heralddb.State(s))
	}
	rows, err := t.requests(ctx, filter)
	if err != nil {
		return err
	}
	views := make([]requestView, 0, len(rows))
	for _, r := range rows {
		views = append(views, t.viewRequest(r))
	}
	if l.asJSON {
		return writeJSON(j.stdout, views)
	}
	return requestsTable(views).write(j.stdout)
}

// requests reads the rows that a filter chooses. That a hook has none is an answer
// only for a hook that there is, or that has other rows.
func (t *tables) requests(ctx context.Context, f heralddb.Filter) ([]heralddb.Listed, error) {
	rows, err := t.rows.Requests(ctx, f)
	if err != nil || len(rows) > 0 || f.HookPHID == "" {
		return rows, t.phorge(err)
	}
	hooks, err := t.rows.Hooks(ctx)
	if err != nil || slices.ContainsFunc(hooks, func(h heralddb.HookName) bool { return h.PHID == f.HookPHID }) {
		return nil, t.phorge(err)
	}
	others, err := t.rows.Requests(ctx, heralddb.Filter{HookPHID: f.HookPHID, Limit: 1})
	if err == nil && len(others) == 0 {
		return nil, noHook(f.HookPHID)
	}
	return nil, t.phorge(err)
}

func (t *tables) viewRequest(r heralddb.Listed) requestView {
	v := requestView{
		PHID: r.PHID, ID: r.ID, Hook: r.HookPHID, Object: r.ObjectPHID, State: string(r.State), Status: string(r.Status),
		Created: at(r.Created), now: r.Now,
	}
	// A row that was never tried has a result only where its hook's settings
	// failed it: the properties say so, the column does not.
	last := viewResult(string(r.LastResult), r.LastEpoch, r.Properties)
	if r.LastEpoch != 0 || last.Type != "" {
		v.Last = &last
	}
	if r.State == heralddb.StateResting && !farAhead(r, seconds(t.lease)) {
		v.Next = at(r.LastEpoch + t.backoff())
	}
	return v
}

func (r requestView) lastText() string {
	if r.Last == nil {
		return ""
	}
	return r.Last.ago(r.now)
}

func (r requestView) nextText() string {
	if r.Next == nil {
		return ""
	}
	return "in " + span(int64(*r.Next)-r.now)
}

func (r requestView) ageText() string {
	if r.Created == nil {
		return ""
	}
	return span(r.now - int64(*r.Created))
}

func requestsTable(requests []requestView) *table {
	t := &table{header: []string{"REQUEST", "ID", "STATE", "AGE", "LAST RESULT", "NEXT", "HOOK", "OBJECT"}}
	t.spare = []string{"LAST RESULT", "NEXT", "AGE", "HOOK", "ID", "OBJECT"}
	t.least = map[string]int{"LAST RESULT": 23} // "fail, HTTP status 503" and what says that it was cut
	t.all = "`waybill requests show PHID`"
	for _, r := range requests {
		t.add(r.PHID, count(int64(r.ID)), r.State, r.ageText(), r.lastText(), r.nextText(), r.Hook, r.Object)
	}
	return t
}
