package activities_test

import (
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"waybill/activities"
	"waybill/internal/herald"
)

// Names and times of these tests. The secrets look like nothing else.
const (
	id         = uint64(17)
	phid       = "PHID-HWBR-row"
	hookPHID   = "PHID-HWBH-hook"
	objectPHID = "PHID-TASK-object"
	secretKey  = "geheimerschluessel"
	secretUser = "geheimernutzer"
	secretPath = "geheimerpfad"
	uri        = "https://" + secretUser + ":" + secretUser + "@hooks.example.com/" + secretPath + "?token=" + secretPath
	start      = int64(1_800_000_000)
)

func rules() activities.Rules {
	return activities.Rules{
		Timeout: 15 * time.Second, Allowance: 10 * time.Second, Lease: 30 * time.Second,
		Backoff: 60 * time.Second, BreakerWindow: 300 * time.Second,
	}
}

// world is everything around one process's activities.
type world struct {
	*testing.T
	*activities.Herald
	faults  *faults
	rows    *table
	things  *catalogue
	pauses  *pauses
	gate    *gate
	to      *receiver
	counts  *counts
	witness *witness
	clock   *clock
	logs    *observer.ObservedLogs
	log     *zap.Logger
	rules   activities.Rules
}

// newWorld has one fresh row, an enabled hook, and a receiver that says 200.
func newWorld(t *testing.T) *world {
	t.Helper()
	f := &faults{}
	w := &world{
		T: t, faults: f,
		rows: &table{faults: f, clock: start, rows: map[uint64]*herald.Request{}, hook: &herald.Hook{
			PHID: hookPHID, Name: "hook", URI: uri, Status: "enabled", HMACKey: []byte(secretKey),
		}},
		things: &catalogue{faults: f, object: herald.Exists, readable: true},
		pauses: &pauses{faults: f, set: map[string]herald.Pause{}},
		to:     &receiver{answer: answers(200)},
		clock:  &clock{now: time.Now()}, rules: rules(),
	}
	w.insert(id, phid)
	core, logs := observer.New(zapcore.DebugLevel)
	w.log, w.logs = zap.New(core), logs
	w.restart()
	return w
}

func (w *world) insert(id uint64, phid string) {
	w.rows.rows[id] = &herald.Request{
		ID: id, PHID: phid, HookPHID: hookPHID, ObjectPHID: objectPHID, Status: herald.StatusQueued,
		Properties: []byte(`{"retry":"forever"}`), LastResult: herald.ResultNone, Created: start, Modified: start,
	}
}

// restart is a new process: what the old one remembered is gone, and so is its
// slot. The database stays.
func (w *world) restart() {
	w.witness = &witness{}
	w.gate = &gate{lost: make(chan struct{})}
	w.counts = &counts{claims: map[activities.ClaimState]int{}, attempts: map[string]int{}}
	w.Herald = activities.NewHerald(activities.Config{
		Rows: w.rows, Objects: w.things, Pauses: w.pauses, Gate: w.gate, Poster: w.to, Meter: w.counts, Witness: w.witness,
		Log: w.log, Clock: w.clock.Now, Rules: w.rules,
	})
}

// pass lets time go by, here and in the database.
func (w *world) pass(d time.Duration) {
	w.clock.advance(d)
	w.jump(d)
}

// jump moves the database's clock alone.
func (w *world) jump(d time.Duration) {
	w.rows.mu.Lock()
	defer w.rows.mu.Unlock()
	w.rows.clock += int64(d / time.Second)
}

func ref() activities.Ref { return activities.Ref{ID: id, PHID: phid, HookPHID: hookPHID} }

func (w *world) ask() (activities.ClaimResult, error) {
	return w.Claim(w.Context(), activities.ClaimInput{Ref: ref(), Attempt: 1})
}

// claims asks and wants that state.
func (w *world) claims(want activities.ClaimState) activities.ClaimResult {
	w.Helper()
	res, err := w.ask()
	if err != nil || res.State != want {
		w.Fatalf("claim: %+v, %v, want %s", res, err, want)
	}
	return res
}

func (w *world) send(c activities.ClaimResult) activities.SendResult {
	w.Helper()
	res, err := w.Send(w.Context(), activities.SendInput{Ref: ref(), Version: c.Version, Attempt: 1})
	if err != nil {
		w.Fatal(err)
	}
	return res
}

// sends uses a claim and wants that state.
func (w *world) sends(c activities.ClaimResult, want activities.SendState) activities.SendResult {
	w.Helper()
	res := w.send(c)
	if res.State != want {
		w.Fatalf("send: %+v, want %s", res, want)
	}
	return res
}

// posted wants that many calls to have reached the receiver.
func (w *world) posted(want int) {
	w.Helper()
	if got := w.to.count(); got != want {
		w.Errorf("%d calls, want %d", got, want)
	}
}

// free wants the hook's slot to be given back.
func (w *world) free() {
	w.Helper()
	if n := w.gate.slots(); n != 0 {
		w.Errorf("%d slots are still taken", n)
	}
}

// lines are the log lines with that text.
func (w *world) lines(message string) []observer.LoggedEntry {
	return w.logs.FilterMessage(message).All()
}

// foreignClaim is what another process's claim does to the row.
func (w *world) foreignClaim() {
	w.rows.edit(id, func(r *herald.Request) { r.Modified = max(r.Modified+1, w.rows.clock) })
}
