package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestHealthIsNotReadyBeforeAnybodyLooked(t *testing.T) {
	ready, reasons := newHealth().ready(t.Context())
	if ready || !slices.Equal(reasons, []string{starting}) {
		t.Fatalf("a process that has checked nothing: ready %v, %q", ready, reasons)
	}
}

func TestHealthFollowsProblemsAndChecks(t *testing.T) {
	h := newHealth()
	h.solved(starting)
	broken := errors.New("broken")
	var fault error
	h.watch(check{"the first is away", func(context.Context) error { return fault }},
		check{"the second is away", func(context.Context) error { return nil }})
	steps := []struct {
		name string
		do   func()
		want []string
	}{
		{"all well", func() {}, nil},
		{"a problem of coming up", func() { h.trouble("no database"); h.trouble("no database") }, []string{"no database"}},
		{"and a check that fails", func() { fault = broken }, []string{"no database", "the first is away"}},
		{"solved, the check still fails", func() { h.solved("no database") }, []string{"the first is away"}},
		{"well again", func() { fault = nil }, nil},
	}
	for _, s := range steps {
		s.do()
		ready, reasons := h.ready(t.Context())
		if ready != (len(s.want) == 0) || !slices.Equal(reasons, s.want) {
			t.Errorf("%s: ready %v, %q; want %q", s.name, ready, reasons, s.want)
		}
	}
}

// A dependency that hangs is a failing one, and hides no other.
func TestHealthBoundsChecksThatHang(t *testing.T) {
	h := newHealth()
	h.solved(starting)
	h.watch(check{"one hangs", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		check{"one fails", func(context.Context) error { return errors.New("no") }})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if ready, reasons := h.ready(ctx); ready || len(reasons) != 2 {
		t.Fatalf("ready %v, %q; want both", ready, reasons)
	}
}
