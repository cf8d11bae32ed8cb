package scenario_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"waybill/test/scenario"
)

// post calls a hook for a row and returns the status, 0 for none.
func post(ctx context.Context, url, row string) int {
	body := `{"triggers":[{"phid":"` + row + `"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

func newWitness(t *testing.T) *scenario.Witness {
	t.Helper()
	return scenario.NewWitness(t, scenario.WitnessConfig{Now: time.Now, Callers: func() []int { return []int{os.Getpid()} }})
}

// The table is total: every behaviour, by its first three answers to one row.
func TestBehavioursAnswerAsTheyAreCalled(t *testing.T) {
	w := newWitness(t)
	answers := map[string][3]int{
		scenario.Fast: {200, 200, 200}, scenario.Slow: {200, 200, 200}, scenario.Failing: {500, 500, 500},
		scenario.Flapping: {500, 200, 500}, scenario.Recovering: {500, 200, 200}, scenario.Reset: {}, scenario.Hang: {},
	}
	for behaviour := range scenario.Behaviours() {
		want, listed := answers[behaviour]
		if !listed {
			t.Errorf("%s is not in the table", behaviour)
		}
		for i, status := range want {
			ctx, cancel := context.WithTimeout(t.Context(), scenario.Patience)
			if behaviour == scenario.Hang {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
			}
			if got := post(ctx, w.URL(behaviour, behaviour), "row-"+behaviour); got != status {
				t.Errorf("%s, call %d: %d, want %d", behaviour, i+1, got, status)
			}
			cancel()
		}
	}
}

func TestAWitnessKnowsRowHookCallerAndTimes(t *testing.T) {
	w := newWitness(t)
	before := time.Now()
	post(t.Context(), w.URL(scenario.Slow, "hook-1"), "row-1")
	after := time.Now()
	calls := w.Calls()
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	c := calls[0]
	if c.Hook != "hook-1" || c.Row != "row-1" || c.Caller != scenario.ByWaybill || c.Status != 200 || c.PID != os.Getpid() {
		t.Errorf("call %+v", c)
	}
	if c.Start.Before(before) || c.End.After(after) || c.End.Sub(c.Start) < 300*time.Millisecond {
		t.Errorf("from %v to %v; asked from %v to %v", c.Start, c.End, before, after)
	}
}

// A caller that gives up and calls again at once has one call at a time; the
// witness says so although it may hear of both at the same moment.
func TestACallThatWasGivenUpDoesNotOverlapTheNext(t *testing.T) {
	w := newWitness(t)
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		post(ctx, w.URL(scenario.Hang, "hook-1"), "row-1")
		cancel()
	}
	for _, wrong := range (scenario.Evidence{Calls: w.Calls()}).Judge().Wrong {
		if strings.HasPrefix(wrong, "overlap") {
			t.Error(wrong)
		}
	}
}

func TestTwoCallsAtOnceOverlap(t *testing.T) {
	w := newWitness(t)
	ended := make(chan int)
	for _, row := range []string{"row-1", "row-2"} {
		go func() { ended <- post(t.Context(), w.URL(scenario.Slow, "hook-1"), row) }()
	}
	<-ended
	<-ended
	overlaps := 0
	for _, wrong := range (scenario.Evidence{Calls: w.Calls()}).Judge().Wrong {
		if strings.HasPrefix(wrong, "overlap") {
			overlaps++
		}
	}
	if overlaps != 1 {
		t.Errorf("%d overlaps, want one", overlaps)
	}
}
