package activities_test

import (
	"context"
	"sync"
	"testing"

	"waybill/activities"
	"waybill/internal/herald"
)

// pauses is the pause table.
type pauses struct {
	*faults
	mu  sync.Mutex
	set map[string]herald.Pause
}

func (p *pauses) Paused(_ context.Context, hook string) (*herald.Pause, error) {
	if err := p.at("paused before"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := p.set[hook]; ok {
		return &v, nil
	}
	return nil, nil
}

func (p *pauses) SetPause(_ context.Context, v herald.Pause) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set[v.HookPHID] = v
	return p.at("set pause after")
}

func (p *pauses) EndPause(_ context.Context, v herald.Pause) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set[v.HookPHID] == v {
		delete(p.set, v.HookPHID)
	}
	return p.at("end pause after")
}

func TestOperatorsPauseGoesThrough(t *testing.T) {
	w := newWorld(t)
	p := herald.Pause{HookPHID: hookPHID, By: "op", Reason: "upgrade"}
	resume := func(known, stands *herald.Pause) {
		t.Helper()
		if got, err := w.Resume(t.Context(), hookPHID, known); err != nil || (got == nil) != (stands == nil) || (got != nil && *got != *stands) {
			t.Errorf("after the resume stands %v, %v, want %v", got, err, stands)
		}
	}
	resume(nil, nil)
	if got, err := w.Pause(t.Context(), p); err != nil || got == nil || *got != p {
		t.Fatal(got, err)
	}
	if got, err := w.Paused(t.Context(), hookPHID); err != nil || got == nil || *got != p {
		t.Errorf("paused %v, %v", got, err)
	}
	if res := w.claims(activities.Paused); res.Reason != "Paused by op: upgrade" {
		t.Errorf("reason %q", res.Reason)
	}
	resume(&herald.Pause{HookPHID: hookPHID, By: "an older one"}, &p)
	resume(&p, nil)
	w.claims(activities.Won)
	if _, err := w.Pause(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	resume(nil, nil)
	for point, call := range map[string]func() error{
		"set pause after": func() error { _, err := w.Pause(t.Context(), p); return err },
		"end pause after": func() error { _, err := w.Resume(t.Context(), hookPHID, &p); return err },
		"paused before":   func() error { _, err := w.Paused(t.Context(), hookPHID); return err },
	} {
		w.faults.set(point, 1)
		if call() == nil {
			t.Errorf("%s: no error", point)
		}
	}
}
