package activities_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"waybill/activities"
	"waybill/internal/herald"
	"waybill/internal/signature"
)

// sendCase is one way a send can end.
type sendCase struct {
	name string
	// set prepares the world; under happens while the receiver has the call.
	set, under func(w *world)
	reply      activities.Reply
	want       activities.SendState
	status     herald.Status
	outcome    string
	retry      bool
}

func reply(a herald.Answer) activities.Reply {
	return activities.Reply{Answer: a, Sent: true, Took: time.Millisecond}
}

func sendCases() []sendCase {
	never := func(w *world) { w.row(func(r *herald.Request) { r.Properties = []byte(`{"retry":"never"}`) }) }
	ok := reply(herald.Answer{HTTPStatus: 204})
	return []sendCase{
		{name: "delivered", reply: ok, want: activities.Recorded, status: herald.StatusSent, outcome: "ok"},
		{
			name: "500, to be retried", reply: reply(herald.Answer{HTTPStatus: 500}),
			want: activities.Recorded, status: herald.StatusQueued, outcome: "http_error", retry: true,
		},
		{
			name: "500, for good", set: never, reply: reply(herald.Answer{HTTPStatus: 500}),
			want: activities.Recorded, status: herald.StatusFailed, outcome: "http_error",
		},
		{
			name: "timeout", reply: reply(herald.Answer{Timeout: true, Curl: 28}),
			want: activities.Recorded, status: herald.StatusQueued, outcome: "timeout", retry: true,
		},
		{
			name: "timeout after the head", reply: reply(herald.Answer{HTTPStatus: 200, Timeout: true, Curl: 28}),
			want: activities.Recorded, status: herald.StatusQueued, outcome: "timeout", retry: true,
		},
		{
			name: "refused", reply: reply(herald.Answer{Curl: 7}),
			want: activities.Recorded, status: herald.StatusQueued, outcome: "transport", retry: true,
		},
		{
			name: "a 200 that broke off", reply: reply(herald.Answer{HTTPStatus: 200, Curl: 18}),
			want: activities.Recorded, status: herald.StatusQueued, outcome: "transport", retry: true,
		},
		{
			name: "denied", reply: reply(herald.Answer{Denied: true}),
			want: activities.Recorded, status: herald.StatusFailed, outcome: "config",
		},
		{
			name: "no such host", reply: reply(herald.Answer{Curl: 6, NoSuchHost: true}),
			want: activities.Recorded, status: herald.StatusFailed, outcome: "config",
		},
		{
			name: "PHP failed it", reply: ok, want: activities.Overtaken, status: herald.StatusFailed, outcome: "ok",
			under: func(w *world) { w.row(func(r *herald.Request) { r.Status = herald.StatusFailed }) },
		},
		{
			name: "PHP saved it", reply: ok, want: activities.Overtaken, status: herald.StatusQueued, outcome: "ok",
			under: func(w *world) { w.row(func(r *herald.Request) { r.Modified++ }) },
		},
		{
			name: "collected", reply: ok, want: activities.Vanished, outcome: "ok",
			under: func(w *world) { w.rows.collect(id) },
		},
		{
			name: "not written", reply: ok, want: activities.Unwritten, status: herald.StatusQueued, outcome: "ok",
			under: func(w *world) { w.faults.set("finish before", 1<<30) },
		},
		{
			name: "cut off under way", reply: activities.Reply{Aborted: true, Sent: true, Took: time.Millisecond, Fault: "Cut."},
			want: activities.Unknown, status: herald.StatusQueued, outcome: "unknown",
		},
		{
			// The process stood still: an answer may have come and not been read.
			name: "stopped during the call", reply: activities.Reply{Answer: herald.Answer{Timeout: true, Curl: 28}, Sent: true, Took: 18 * time.Second},
			want: activities.Unknown, status: herald.StatusQueued, outcome: "unknown", set: never,
		},
		{
			name: "cut off before", reply: activities.Reply{Aborted: true, Took: time.Millisecond, Fault: "Cut."},
			want: activities.Unsent, status: herald.StatusQueued,
		},
	}
}

func (c sendCase) run(t *testing.T) (*world, activities.SendResult) {
	t.Helper()
	w := newWorld(t)
	if c.set != nil {
		c.set(w)
	}
	w.to.answer = func(context.Context, activities.Call) activities.Reply {
		if c.under != nil {
			c.under(w)
		}
		return c.reply
	}
	return w, w.send(w.claims(activities.Won))
}

func TestSendReachesEveryState(t *testing.T) {
	missing := constants(t, "SendState")
	for _, tt := range sendCases() {
		delete(missing, string(tt.want))
		t.Run(tt.name, func(t *testing.T) {
			w, res := tt.run(t)
			if res.State != tt.want || res.Retry != tt.retry {
				t.Fatalf("send %+v, want %s, retry %v", res, tt.want, tt.retry)
			}
			r, there := w.rows.find(id)
			if there && r.Status != tt.status || there != (tt.status != "") {
				t.Errorf("row %+v, want %s", r, tt.status)
			}
			if tt.want == activities.Recorded && (res.Row.Status != r.Status || res.Row.Result != r.LastResult) {
				t.Errorf("reported %+v of %+v", res.Row, r)
			}
			if got := w.counts.outcomes(); tt.outcome == "" && len(got) != 0 || tt.outcome != "" && (len(got) != 1 || got[tt.outcome] != 1) {
				t.Errorf("counted %v, want one %q", got, tt.outcome)
			}
			w.posted(1)
			if tt.want == activities.Unwritten {
				return // its slot is another test's
			}
			w.free()
			if e := w.gate.ends(); len(e) != 1 || e[0].State != activities.Won || e[0].Ref != ref() {
				t.Errorf("told the feed %+v", e)
			}
			// A call that was cut off says nothing about the receiver's speed.
			want := time.Millisecond
			if tt.reply.Aborted || tt.want == activities.Unknown {
				want = 0
			}
			if took := w.gate.lastTook(); took != want {
				t.Errorf("receiver took %s, want %s", took, want)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("no case for %v", missing)
	}
}

func TestAClaimIsSentOnce(t *testing.T) {
	w := newWorld(t)
	c := w.claims(activities.Won)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { w.send(c) })
	}
	group.Wait()
	w.posted(1)
	w.sends(c, activities.Unsent)
	w.posted(1)
	w.free()
}

func TestOnlyTheClaimedVersionIsSent(t *testing.T) {
	w := newWorld(t)
	c := w.claims(activities.Won)
	for _, v := range []int64{0, c.Version - 1, c.Version + 1} {
		w.sends(activities.ClaimResult{Version: v}, activities.Unsent)
	}
	other := activities.SendInput{Ref: activities.Ref{ID: id, PHID: "PHID-HWBR-other", HookPHID: hookPHID}, Version: c.Version}
	if res, err := w.Send(t.Context(), other); err != nil || res.State != activities.Unsent {
		t.Errorf("another row: %+v, %v", res, err)
	}
	w.posted(0)
	w.sends(c, activities.Recorded)
}

// The rest of the lease must cover a whole exchange and its write: 30 - 15 - 10.
func TestALateClaimIsNotSent(t *testing.T) {
	for _, tt := range []struct {
		age  time.Duration
		want activities.SendState
	}{
		{5 * time.Second, activities.Recorded},
		{5*time.Second + 1, activities.Unsent},
		{time.Hour, activities.Unsent},
	} {
		w := newWorld(t)
		c := w.claims(activities.Won)
		w.clock.advance(tt.age)
		w.sends(c, tt.want)
		w.free()
		if tt.want == activities.Unsent {
			w.posted(0)
			// Nothing was sent, so nobody waits for the lease.
			w.claims(activities.Won)
		}
	}
}

// The lease counts from before the claim's statement, not from its answer.
func TestADelayedAnswerDoesNotRenewTheClaim(t *testing.T) {
	w := newWorld(t)
	w.rows.onClaim(func() { w.pass(3 * time.Second) })
	c := w.claims(activities.Won)
	w.clock.advance(2*time.Second + 1)
	w.sends(c, activities.Unsent)
	w.posted(0)
}

func TestLosingTheHookBeforeSending(t *testing.T) {
	w := newWorld(t)
	c := w.claims(activities.Won)
	w.gate.unowned = true
	w.sends(c, activities.Unsent)
	w.posted(0)
	w.free()
}

// Losing the lock cuts the call off. What the receiver got nobody knows, so the
// row rests for a lease.
func TestLosingTheHookUnderWay(t *testing.T) {
	w := newWorld(t)
	w.to.answer = func(ctx context.Context, _ activities.Call) activities.Reply {
		close(w.gate.lost)
		<-ctx.Done()
		return activities.Reply{Aborted: true, Sent: true, Took: time.Second}
	}
	res := w.sends(w.claims(activities.Won), activities.Unknown)
	if res.Wait != rules().Lease || res.Row != nil || res.Retry {
		t.Errorf("send %+v", res)
	}
	w.free()
	w.claims(activities.Leased)
	w.pass(rules().Lease + time.Second)
	w.claims(activities.Won)
	w.posted(1)
}

// A call that was cut off before its first byte is known to have sent nothing:
// nobody waits for its lease.
func TestACallCutOffBeforeItsFirstByte(t *testing.T) {
	w := newWorld(t)
	w.to.answer = replies(activities.Reply{Aborted: true})
	w.sends(w.claims(activities.Won), activities.Unsent)
	w.to.answer = answers(200)
	w.sends(w.claims(activities.Won), activities.Recorded)
	w.free()
}

// The moment of completion is the database's, taken by the write itself: this
// process's idea of it is only for writes that come late.
func TestTheDatabaseDatesTheResult(t *testing.T) {
	w := newWorld(t)
	w.to.answer = func(context.Context, activities.Call) activities.Reply {
		w.jump(9 * time.Second)
		return reply(herald.Answer{HTTPStatus: 200})
	}
	w.sends(w.claims(activities.Won), activities.Recorded)
	if r := w.rows.row(id); r.LastEpoch != start+9 {
		t.Errorf("completed %d s after the start, want 9", r.LastEpoch-start)
	}
}

// The write of a known result does not depend on the task that asked for it.
func TestAResultIsWrittenWhateverBecomesOfTheTask(t *testing.T) {
	w := newWorld(t)
	task, cancel := context.WithCancel(t.Context())
	w.to.answer = func(context.Context, activities.Call) activities.Reply {
		cancel()
		return reply(herald.Answer{HTTPStatus: 200})
	}
	c := w.claims(activities.Won)
	res, err := w.Send(task, activities.SendInput{Ref: ref(), Version: c.Version, Attempt: 1})
	if err != nil || res.State != activities.Recorded || w.rows.row(id).Status != herald.StatusSent {
		t.Errorf("send %+v, %v, row %+v", res, err, w.rows.row(id))
	}
}

// A fault in the code below must not keep the hook's slot for good.
func TestAPanicGivesTheSlotBack(t *testing.T) {
	w := newWorld(t)
	w.to.answer = func(context.Context, activities.Call) activities.Reply { panic("poster") }
	c := w.claims(activities.Won)
	panics(t, func() { w.send(c) })
	w.free()
	w.claims(activities.Leased) // it may have sent
	w.pass(time.Minute)
	w.rows.onLoad(func() { panic("rows") })
	panics(t, func() { _, _ = w.ask() })
	w.free()
	w.claims(activities.Won)
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// A process that was stopped between its last look at the clock and the end of
// the call must not stay on the wire while its claim runs out.
func TestTheCallEndsBeforeTheLeaseDoes(t *testing.T) {
	w := newWorld(t)
	const timeout, spare = 20 * time.Millisecond, 10 * time.Minute
	w.rules.Timeout, w.rules.Lease = timeout, w.rules.Allowance+timeout+spare
	w.restart()
	w.to.answer = func(ctx context.Context, _ activities.Call) activities.Reply {
		<-ctx.Done() // a call whose own timeout does not work
		return activities.Reply{Aborted: true, Sent: true}
	}
	c := w.claims(activities.Won)
	w.clock.advance(spare) // the last moment to begin
	w.sends(c, activities.Unknown)
}

func TestTheSignedBytesAreTheSentBytes(t *testing.T) {
	w := newWorld(t)
	w.things.found = []string{"PHID-XACT-2", "PHID-XACT-1"}
	w.row(func(r *herald.Request) {
		r.Properties = []byte(`{"retry":"forever","transactionPHIDs":{"PHID-XACT-1":"PHID-XACT-1","PHID-XACT-2":"PHID-XACT-2","x":"gone"},"triggerPHIDs":["ü🎉/<>"],"silent":1}`)
	})
	before := w.rows.row(id)
	w.sends(w.claims(activities.Won), activities.Recorded)
	p, err := herald.ParseProperties(before.Properties)
	if err != nil {
		t.Fatal(err)
	}
	call := w.to.calls[0]
	if want := herald.Document(before, p, w.things.found); string(call.Body) != string(want) {
		t.Errorf("sent\n%s\nwant\n%s", call.Body, want)
	}
	if want := signature.Phorge([]byte(secretKey), call.Body); call.Signature != want {
		t.Errorf("signature %s, want %s", call.Signature, want)
	}
	target, err := herald.ParseURI(uri)
	if err != nil || call.Target.RequestTarget != target.RequestTarget || call.Target.Host != target.Host ||
		*call.Target.User != *target.User || call.Timeout != rules().Timeout {
		t.Errorf("called %v within %s, want %v (%v)", call.Target, call.Timeout, target, err)
	}
}

// Where the transaction table may not be read, the property's order is reversed.
func TestTransactionsWithoutTheirTable(t *testing.T) {
	const list = `{"transactionPHIDs":["a","PHID-XACT-TASK-b","c","PHID-XACT-APPS-d","PHID-XACT-TASK-b"]}`
	own := []string{"c", "PHID-XACT-TASK-b", "a"}
	for name, tt := range map[string]struct {
		set  func(w *world)
		want []string
	}{
		"readable":       {func(w *world) { w.things.found = []string{"c", "a"} }, []string{"c", "a"}},
		"none found":     {func(*world) {}, nil},
		"unreadable":     {func(w *world) { w.things.readable = false }, own},
		"object unknown": {func(w *world) { w.things.object, w.things.readable = herald.Unknown, false }, own},
		"unknown type":   {func(w *world) { w.row(func(r *herald.Request) { r.ObjectPHID = "PHID-ZZZZ-x" }) }, []string{"c", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.row(func(r *herald.Request) { r.Properties = []byte(list) })
			tt.set(w)
			before := w.rows.row(id)
			w.sends(w.claims(activities.Won), activities.Recorded)
			p, err := herald.ParseProperties(before.Properties)
			if err != nil {
				t.Fatal(err)
			}
			if want := herald.Document(before, p, tt.want); string(w.to.calls[0].Body) != string(want) {
				t.Errorf("sent\n%s\nwant\n%s", w.to.calls[0].Body, want)
			}
		})
	}
}
