package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	commonpb "go.temporal.io/api/common/v1"

	"waybill/internal/herald"
	"waybill/workflows"
)

const hookPHID = "PHID-HWBH-hook"

// table is a pause table that may be away, and a hook's workflow over it.
type table struct {
	*stage
	pause *herald.Pause
	away  int // how many calls fail before the next one works
	calls []string
}

func newTable(t *testing.T) *table {
	t.Helper()
	p := &table{stage: newStage(t)}
	for name, fake := range map[string]any{"Pause": p.set, "Resume": p.clear, "Paused": p.get} {
		p.RegisterActivityWithOptions(fake, activity.RegisterOptions{Name: name})
	}
	return p
}

// fails takes one failure, if any is left.
func (p *table) fails(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away > 0 {
		p.away--
		return errors.New("the pause table is away")
	}
	p.calls = append(p.calls, what)
	return nil
}

func (p *table) set(_ context.Context, pause herald.Pause) (*herald.Pause, error) {
	if err := p.fails("pause"); err != nil {
		return nil, err
	}
	if p.pause == nil || p.pause.Released != pause.Released {
		p.pause = &pause
	}
	return p.pause, nil
}

func (p *table) clear(_ context.Context, hook string, known *herald.Pause) (*herald.Pause, error) {
	if hook != hookPHID {
		p.t.Errorf("resume of %q", hook)
	}
	if err := p.fails("resume"); err != nil {
		return nil, err
	}
	if known == nil || (p.pause != nil && p.pause.Reason == known.Reason) {
		p.pause = nil
	}
	return p.pause, nil
}

func (p *table) get(context.Context, string) (*herald.Pause, error) {
	return p.pause, p.fails("paused")
}

// at does something after so many seconds of the workflow's time.
func (p *table) at(seconds int, f func()) {
	p.RegisterDelayedCallback(f, time.Duration(seconds)*time.Second)
}

func (p *table) signal(seconds int, name string, arg any) {
	p.at(seconds, func() { p.SignalWorkflow(name, arg) })
}

// play runs the hook's workflow, retired at the end, and returns its error.
func (p *table) play(in workflows.HookInput) error {
	p.t.Helper()
	in.PHID = hookPHID
	p.signal(1000, workflows.SignalRetire, nil)
	p.ExecuteWorkflow(workflows.Hook, in)
	if !p.IsWorkflowCompleted() {
		p.t.Fatal("the workflow did not end")
	}
	return p.GetWorkflowError()
}

func (p *table) state() (state workflows.HookState) {
	p.t.Helper()
	value, err := p.QueryWorkflow(workflows.QueryState)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		p.t.Error(err)
	}
	return state
}

// Every form of argument pauses; what can be read of it is kept.
func TestPauseInEveryForm(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	for _, c := range []struct {
		name, by, reason string
		arg              any
	}{
		{"no argument", "an operator", "", nil},
		{"plain string", "an operator", "storage upgrade", "storage upgrade"},
		{"empty string", "an operator", "", ""},
		{"object", "ada", "upgrade", map[string]string{"by": "ada", "reason": "upgrade"}},
		{"object without by", "an operator", "upgrade", map[string]string{"reason": "upgrade"}},
		{"empty object", "an operator", "", map[string]string{}},
		{"object with other types", "an operator", `{"by":5}`, map[string]int{"by": 5}},
		{"number", "an operator", "17", 17},
		{"list", "an operator", `["a"]`, []string{"a"}},
		{"garbage bytes", "an operator", "\uFFFD\x00{", converter.NewRawValue(&commonpb.Payload{Data: []byte{0xff, 0, '{'}})},
		{"unknown encoding", "an operator", "x y", converter.NewRawValue(&commonpb.Payload{
			Metadata: map[string][]byte{"encoding": []byte("binary/zipped")}, Data: []byte("x y")})},
		{"over-long", strings.Repeat("ü", 128), strings.Repeat("ü", 1024), map[string]string{"by": long, "reason": long}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newTable(t)
			p.signal(1, workflows.SignalPause, c.arg)
			var at time.Time
			p.at(1, func() { at = p.Now() })
			p.at(2, func() {
				if s := p.state(); !s.Paused || *s.Pause != *p.pause {
					t.Errorf("state %+v beside the table's %+v", s, p.pause)
				}
			})
			if err := p.play(workflows.HookInput{}); err != nil {
				t.Fatal(err)
			}
			want := herald.Pause{HookPHID: hookPHID, At: at.UTC(), By: c.by, Reason: c.reason}
			got := *p.pause
			got.At = got.At.UTC()
			if got != want {
				t.Errorf("paused with %+v, want %+v", got, want)
			}
		})
	}
}

func TestFirstPauseStandsUntilResumed(t *testing.T) {
	p := newTable(t)
	p.signal(1, workflows.SignalPause, "first")
	p.signal(2, workflows.SignalPause, "second")
	p.at(3, func() {
		if s := p.state(); s.PHID != hookPHID || !s.Paused || s.Pause.Reason != "first" {
			t.Errorf("state %+v", s)
		}
	})
	p.signal(4, workflows.SignalResume, nil)
	p.at(5, func() {
		if s := p.state(); s.Paused || s.Pause != nil || p.pause != nil {
			t.Errorf("state %+v, table %+v", s, p.pause)
		}
	})
	p.signal(6, workflows.SignalResume, "once more")
	p.signal(7, workflows.SignalPause, "third")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Reason != "third" {
		t.Errorf("table %+v", p.pause)
	}
	want := []string{"paused", "pause", "pause", "resume", "resume", "pause"}
	if !slices.Equal(p.calls, want) {
		t.Errorf("calls %q, want %q", p.calls, want)
	}
}

// A pause counts when it is written: until then the state does not claim it.
func TestPauseIsTriedUntilItIsWritten(t *testing.T) {
	p := newTable(t)
	p.at(1, func() { p.away = 8 })
	p.signal(1, workflows.SignalPause, "now")
	p.at(2, func() {
		if p.pause == nil && p.state().Paused {
			t.Error("paused before it is written")
		}
	})
	p.at(900, func() {
		if !p.state().Paused || p.pause == nil {
			t.Error("not paused in the end")
		}
	})
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
}

// However long the table is away it is asked about every second: attempts begin
// again when it is back, and the pause must not be far behind.
func TestAPauseIsWrittenSoonAfterTheTablesReturn(t *testing.T) {
	p := newTable(t)
	p.at(1, func() { p.away = 8 })
	p.signal(1, workflows.SignalPause, "now")
	// The eight rests are 1.5 s and four more seconds; if they grew to tens of
	// seconds, more than 20 s.
	p.at(12, func() {
		if p.pause == nil {
			t.Error("not paused")
		}
	})
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
}

func TestAnExistingPauseIsTakenOver(t *testing.T) {
	p := newTable(t)
	p.away = 5
	p.pause = &herald.Pause{HookPHID: hookPHID, By: "ada", Reason: "before"}
	p.signal(300, workflows.SignalPause, "again")
	p.at(301, func() {
		if s := p.state(); !s.Paused || s.Pause.Reason != "before" {
			t.Errorf("state %+v", s)
		}
	})
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.calls, []string{"paused", "pause"}) {
		t.Errorf("calls %q", p.calls)
	}
}

// A pause of all hooks is somebody else's: this hook's own must be kept beside it.
func TestAPauseOfAllHooksDoesNotSwallowThisHooksOwn(t *testing.T) {
	p := newTable(t)
	p.pause = &herald.Pause{HookPHID: "*", Reason: "everything"}
	p.at(1, func() {
		if p.state().Paused {
			t.Error("the pause of all hooks is shown as this hook's")
		}
		p.pause = nil // the table keeps both apart
	})
	p.signal(2, workflows.SignalPause, "mine")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Reason != "mine" || p.pause.HookPHID != hookPHID {
		t.Errorf("table %+v", p.pause)
	}
}

// While the table is away, signals wait; where their order is lost the hook
// ends paused.
func TestSignalsWaitForTheTable(t *testing.T) {
	p := newTable(t)
	p.at(1, func() { p.away = 5 })
	p.signal(1, workflows.SignalPause, "first")
	p.signal(1, workflows.SignalResume, nil)
	p.signal(1, workflows.SignalPause, "last")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Reason != "last" {
		t.Errorf("table %+v after %q", p.pause, p.calls)
	}
}

// A hook that goes takes what was signalled before along, and leaves its pause.
func TestRetireAfterWhatWasSignalled(t *testing.T) {
	p := newTable(t)
	p.at(1, func() {
		p.SignalWorkflowSkippingWorkflowTask(workflows.SignalRetire, nil)
		p.SignalWorkflow(workflows.SignalPause, "late")
	})
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Reason != "late" {
		t.Errorf("table %+v", p.pause)
	}
}

func TestCancelledHookKeepsItsPause(t *testing.T) {
	for _, away := range []int{0, 4} {
		p := newTable(t)
		p.at(1, func() { p.away = away })
		p.signal(1, workflows.SignalPause, "stays")
		p.at(1, p.CancelWorkflow)
		err := p.play(workflows.HookInput{})
		if !temporal.IsCanceledError(errors.Unwrap(err)) {
			t.Errorf("ended with %v", err)
		}
		if p.pause == nil {
			t.Errorf("with %d failures the pause was lost", away)
		}
	}
}

func TestCancelledWhileLoading(t *testing.T) {
	p := newTable(t)
	p.away = 8
	p.at(1, p.CancelWorkflow)
	if err := p.play(workflows.HookInput{}); !temporal.IsCanceledError(errors.Unwrap(err)) {
		t.Errorf("ended with %v", err)
	}
}

// A long history is continued once nothing is pending; the table carries the
// state.
func TestHookContinuesAsNewWithNothingPending(t *testing.T) {
	p := newTable(t)
	p.at(1, func() {
		p.SetContinueAsNewSuggested(true)
		p.SignalWorkflowSkippingWorkflowTask(workflows.SignalPause, "first")
		p.SignalWorkflowSkippingWorkflowTask(workflows.SignalResume, nil)
		p.SignalWorkflow(workflows.SignalPause, "last")
	})
	err := p.play(workflows.HookInput{Attributes: true})
	var next *workflow.ContinueAsNewError
	if !errors.As(err, &next) {
		t.Fatalf("ended with %v", err)
	}
	var in workflows.HookInput
	if err := p.decode(next, &in); err != nil || in != (workflows.HookInput{PHID: hookPHID, Attributes: true}) {
		t.Errorf("continues with %+v, %v", in, err)
	}
	if p.pause == nil || p.pause.Reason != "last" {
		t.Errorf("table %+v after %q", p.pause, p.calls)
	}
}

func TestHookIsShown(t *testing.T) {
	for _, on := range []bool{true, false} {
		p := newTable(t)
		seen := p.watched()
		details := func(wants ...string) {
			got := p.details()
			for _, want := range wants {
				if !strings.Contains(got, want) {
					t.Errorf("%q lacks %q", got, want)
				}
			}
		}
		p.at(1, func() { details("**Running.**", "Signal `pause`") })
		p.signal(2, workflows.SignalPause, map[string]string{"by": "ada", "reason": "upgrade"})
		p.signal(3, workflows.SignalPause, "again")
		p.at(4, func() { details("**Paused** by ada at ", "upgrade", "Signal `resume`") })
		p.signal(5, workflows.SignalResume, nil)
		p.signal(6, workflows.SignalResume, nil)
		p.at(7, func() { details("**Running.**") })
		if err := p.play(workflows.HookInput{Attributes: on}); err != nil {
			t.Fatal(err)
		}
		var want []string
		if on {
			want = []string{"running", "paused", "running"}
		}
		if !slices.Equal(seen.states, want) {
			t.Errorf("attributes %v: %q, want %q", on, seen.states, want)
		}
	}
}
