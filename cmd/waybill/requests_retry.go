package main

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"waybill/internal/columns"
	"waybill/internal/herald"
	"waybill/internal/heralddb"
	"waybill/workflows"
)

// retryView is what became of the wish to try a request at once.
type retryView struct {
	Request string `json:"request"` // as it was named
	Told    bool   `json:"told"`    // its open workflow has the signal
	Text    string `json:"text"`

	failure error // something went wrong, as opposed to: there was nothing to tell
}

// retryRequests tells the workflows of requests to end their rest.
func retryRequests(ctx context.Context, j job, w retryWish) error {
	t, err := openWithOrders(ctx, j)
	if err != nil {
		return err
	}
	defer t.close()
	names, err := t.wished(ctx, w)
	if err != nil {
		return err
	}
	temporal, err := soonTemporal(ctx, j)
	if err != nil {
		return err
	}
	defer temporal.Close()
	views, err := tellAll(j, names, func(name string) (retryView, error) { return t.retry(ctx, temporal, name) })
	if err != nil {
		return errors.Join(report(j, w, views), err)
	}
	if len(views) == 0 && !w.asJSON {
		say(j.stdout, "No request of %s rests after a failure.", w.hook)
	}
	if err := report(j, w, views); err != nil {
		return err
	}
	return retried(w, views)
}

// unansweredAtMost signals in a row end a command. Each takes the SDK's ten
// seconds of trying, and of the next thousand one would be answered no sooner.
const unansweredAtMost = 2

// tellAll goes on after a request that could not be told, and ends where the next
// one would fare no better: a database or Temporal is away.
func tellAll(j job, names []string, tell func(string) (retryView, error)) ([]retryView, error) {
	views := make([]retryView, 0, len(names))
	unanswered := 0
	for _, name := range names {
		v, err := tell(name)
		if err != nil {
			return views, err
		}
		views = append(views, v)
		if !silent(v.failure) {
			unanswered = 0
			continue
		}
		if unanswered++; unanswered == unansweredAtMost {
			return views, temporalAway(j, v.failure)
		}
	}
	return views, nil
}

// wished are the requests that were named, or all of the hook's that rest.
func (t *tables) wished(ctx context.Context, w retryWish) ([]string, error) {
	if w.hook == "" {
		return w.requests, nil
	}
	rows, err := t.requests(ctx, heralddb.Filter{
		HookPHID: w.hook, States: []heralddb.State{heralddb.StateResting, heralddb.StateDue}, Limit: retriedAtMost,
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range rows {
		names = append(names, r.PHID)
	}
	return names, nil
}

// retry tells one request's workflow, and says what that means for the row.
func (t *tables) retry(ctx context.Context, temporal client.Client, name string) (retryView, error) {
	v := retryView{Request: name}
	row, err := t.request(ctx, name)
	o := outlook{}
	if err == nil {
		v.Request = row.PHID
		o, err = t.outlook(ctx, row)
	}
	if errors.Is(err, herald.ErrGone) {
		v.Text, v.failure = err.Error(), err
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if text := o.restless(); text != "" {
		v.Text = text
		return v, nil
	}
	err = temporal.SignalWorkflow(ctx, workflows.RequestID(row.PHID), "", workflows.SignalRetryNow, nil)
	var none *serviceerror.NotFound
	switch {
	case errors.As(err, &none):
		v.Text = o.untold()
	case err != nil:
		v.Text, v.failure = "Temporal did not take the signal: "+err.Error(), err
	default:
		v.Told, v.Text = true, o.told()
	}
	return v, nil
}

// restless says why a row has no rest that a signal could end.
func (o outlook) restless() string {
	if text := o.over(); text != "" {
		return text
	}
	if o.row.LastResult != herald.ResultNone {
		return ""
	}
	text, _ := o.next()
	return "It has not failed yet, so there is no rest to end. " + text
}

// told says what a signal changes, and what it does not.
func (o outlook) told() string {
	if text := o.stuck(); text != "" {
		return "Told, and still: " + text
	}
	if o.row.State == heralddb.StateResting {
		o.row.State = heralddb.StateDue // the signal ends the rest, and nothing but the rest
	}
	if o.row.State == heralddb.StateClaimed || o.until != 0 || o.begins != 0 {
		text, _ := o.waits()
		return "Told, and still: " + text
	}
	return "Told: it is tried as soon as it is its turn."
}

// untold says why there is no workflow to tell.
func (o outlook) untold() string {
	if text := o.stuck(); text != "" {
		return "No workflow is open for it. " + text
	}
	text, _ := o.waits()
	if rested := o.row.LastEpoch + o.backoff; o.row.State == heralddb.StateResting && o.until == 0 && o.begins <= rested {
		text = "Waybill starts one when its rest is over, from " + stamp(rested) + " on."
	}
	return "No workflow is open for it. " + text
}

func report(j job, w retryWish, views []retryView) error {
	if w.asJSON {
		return writeJSON(j.stdout, views)
	}
	for _, v := range views {
		say(j.stdout, "%s: %s", columns.Plain(v.Request), columns.Plain(v.Text))
	}
	return nil
}

// retried is the exit code in the end: whoever named a request wants to know
// that it was not told; of a whole hook's, some may well be under way.
func retried(w retryWish, views []retryView) error {
	untold := 0
	for _, v := range views {
		if v.failure != nil || (!v.Told && w.hook == "") {
			untold++
		}
	}
	if untold == 0 {
		return nil
	}
	return notTold(untold, len(views))
}

// notTold ends a command whose lines have said already what is wrong.
func notTold(untold, all int) error {
	switch {
	case all == 1:
		return errors.New("the request was not told to retry; the line above says why")
	case untold == all:
		return fmt.Errorf("none of the %d requests was told to retry; the lines above say why", all)
	case untold == 1:
		return fmt.Errorf("1 of %d requests was not told to retry; the lines above say why", all)
	}
	return fmt.Errorf("%d of %d requests were not told to retry; the lines above say why", untold, all)
}
