package scenario_test

import (
	"context"
	"io"
	"net"
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
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err != nil {
		return 0
	}
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
		scenario.Faltering: {500, 200, 200}, scenario.Bursting: {200, 200, 200}, scenario.Hanging: {0, 200, 200}, scenario.Breaking: {0, 200, 200},
		scenario.Halving: {0, 200, 200}, scenario.Slamming: {0, 200, 0},
	}
	for behaviour := range scenario.Behaviours() {
		want, listed := answers[behaviour]
		if !listed {
			t.Errorf("%s is not in the table", behaviour)
		}
		for i, status := range want {
			ctx, cancel := context.WithTimeout(t.Context(), scenario.Patience)
			if status == 0 && (behaviour == scenario.Hang || behaviour == scenario.Hanging) {
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

// A caller that gives up and calls again at once has one call at a time, also
// when the witness hears of the new call first. Here it never hears of the end:
// the server watches for it by reading, and has more to read than it will.
func TestACallThatWasGivenUpDoesNotOverlapTheNext(t *testing.T) {
	w := newWitness(t)
	url := w.URL(scenario.Hang, "hook-1")
	conn, err := net.Dial("tcp", strings.Split(url, "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	const first = "POST /hang/hook-1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
	if _, err := io.WriteString(conn, first+strings.Repeat("y", 64<<10)); err != nil {
		t.Fatal(err)
	}
	scenario.Until(t, scenario.Patience, "the first call begins", func() bool { return w.UnderWay() == 1 })
	_ = conn.Close()
	post(t.Context(), w.URL(scenario.Fast, "hook-1"), "row-1")
	if w.UnderWay() != 1 {
		t.Error("the witness heard that the first call ended; this shows nothing")
	}
	if n := overlaps(w); n > 0 {
		t.Errorf("%d overlaps: %+v", n, w.Calls())
	}
}

func overlaps(w *scenario.Witness) (n int) {
	for _, wrong := range (scenario.Evidence{Calls: w.Calls()}).Judge().Wrong {
		if strings.HasPrefix(wrong, "overlap") {
			n++
		}
	}
	return n
}

func TestTwoCallsAtOnceOverlap(t *testing.T) {
	w := newWitness(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int)
	for _, row := range []string{"row-1", "row-2"} {
		go func() { ended <- post(ctx, w.URL(scenario.Hang, "hook-1"), row) }()
	}
	scenario.Until(t, scenario.Patience, "both calls are under way", func() bool { return w.UnderWay() == 2 })
	cancel()
	<-ended
	<-ended
	if n := overlaps(w); n != 1 {
		t.Errorf("%d overlaps, want one", n)
	}
}
