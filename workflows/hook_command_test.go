package workflows_test

import (
	"testing"

	"waybill/internal/herald"
	"waybill/workflows"
)

// order is a pause that a command has written into the table.
func order(reason string) *herald.Pause {
	return &herald.Pause{HookPHID: hookPHID, By: "ada", Reason: reason}
}

// Commands write the table themselves; the workflow only shows it.
func TestAHookShowsWhatACommandWrote(t *testing.T) {
	p := newTable(t)
	shows := func(second int, reason string) {
		p.at(second, func() {
			s := p.state()
			if s.Paused != (reason != "") || (s.Pause != nil && s.Pause.Reason != reason) {
				t.Errorf("after %d s: %+v", second, s)
			}
		})
	}
	p.at(1, func() { p.pause = order("by command") })
	shows(2, "")
	p.signal(3, workflows.SignalRefresh, nil)
	shows(4, "by command")
	p.at(5, func() { p.pause = nil })
	p.signal(6, workflows.SignalRefresh, nil)
	shows(7, "")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	for _, call := range p.calls {
		if call != "paused" {
			t.Errorf("the workflow wrote the table: %q", p.calls)
		}
	}
}

// A resume ends what stood when it was given: an order that a command gives
// while the resume is being tried, or waits for a worker, stands.
func TestALateResumeEndsNoNewerOrder(t *testing.T) {
	for name, late := range map[string]func(p *table){
		"the table is away": func(p *table) {
			p.at(2, func() { p.away = 8 })
			p.signal(2, workflows.SignalResume, nil)
			p.at(3, func() { p.pause = order("newer") })
		},
		"no worker is there": func(p *table) {
			p.at(2, func() {
				p.SignalWorkflowSkippingWorkflowTask(workflows.SignalResume, nil)
				p.pause = order("newer")
				p.SignalWorkflow(workflows.SignalRefresh, nil)
			})
		},
		"no worker was there and the pause is new": func(p *table) {
			p.signal(2, workflows.SignalResume, nil)
			p.at(3, func() {
				p.SignalWorkflowSkippingWorkflowTask(workflows.SignalResume, nil)
				p.pause = order("newer")
				p.SignalWorkflow(workflows.SignalRefresh, nil)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTable(t)
			p.signal(1, workflows.SignalPause, "older")
			late(p)
			p.at(900, func() {
				if s := p.state(); !s.Paused || s.Pause.Reason != "newer" {
					t.Errorf("state %+v", s)
				}
			})
			if err := p.play(workflows.HookInput{}); err != nil {
				t.Fatal(err)
			}
			if p.pause == nil || p.pause.Reason != "newer" {
				t.Errorf("table %+v after %q", p.pause, p.calls)
			}
		})
	}
}

// A command that could not reach Temporal changed the table behind the
// workflow's back. Signals do what they say all the same.
func TestSignalsCountThoughTheWorkflowKnowsTheTableNoMore(t *testing.T) {
	p := newTable(t)
	p.at(1, func() { p.pause = order("untold") })
	p.signal(2, workflows.SignalResume, nil)
	p.at(3, func() {
		if p.pause != nil {
			t.Errorf("after the resume %+v", p.pause)
		}
	})
	p.signal(4, workflows.SignalPause, "first")
	p.at(5, func() { p.pause = nil })
	p.signal(6, workflows.SignalPause, "second")
	if err := p.play(workflows.HookInput{}); err != nil {
		t.Fatal(err)
	}
	if p.pause == nil || p.pause.Reason != "second" {
		t.Errorf("table %+v", p.pause)
	}
}
