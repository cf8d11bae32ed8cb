package devstack_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/devstack/stacktest"
)

func newDemo(t *testing.T, p *devstack.Phorge) (*devstack.Demo, *devstack.Receiver) {
	t.Helper()
	r, _ := startReceiver(t)
	d, err := devstack.NewDemo(t.Context(), devstack.DemoConfig{Phorge: p, Receiver: r, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return d, r
}

func queued(t *testing.T, p *devstack.Phorge, hook string) (n int) {
	t.Helper()
	err := p.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM `"+p.Database("herald")+
		"`.herald_webhookrequest WHERE webhookPHID = ? AND status = 'queued'", hook).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDemoQueuesAFirstHandful(t *testing.T) {
	p := stacktest.Phorge(t, "")
	d, _ := newDemo(t, p)
	made, err := d.Enqueue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for i, want := range []struct {
		name string
		rows int
	}{{"healthy", 3}, {"slow", 1}, {"failing", 1}, {"hanging", 1}} {
		hook := d.Hooks()[i]
		if got := queued(t, p, hook.PHID); hook.Name != want.name || got != want.rows {
			t.Errorf("hook %d is %s with %d rows, want %s with %d", i, hook.Name, got, want.name, want.rows)
		}
		total += want.rows
	}
	if made != total {
		t.Errorf("said %d, made %d", made, total)
	}
}

// A second run finds the first one's hooks, with their keys, and a receiver
// that listens elsewhere.
func TestDemoKeepsHooksAndFollowsTheReceiver(t *testing.T) {
	p := stacktest.Phorge(t, "")
	first, _ := newDemo(t, p)
	second, r := newDemo(t, p)
	for i, h := range second.Hooks() {
		before := first.Hooks()[i]
		if h.PHID != before.PHID || h.Key != before.Key {
			t.Errorf("hook %s was made again", h.Name)
		}
		if len(h.Key) != 32 {
			t.Errorf("hook %s has a key of %d characters", h.Name, len(h.Key))
		}
	}
	stored, err := p.Hooks(t.Context())
	if err != nil || len(stored) != len(second.Hooks()) {
		t.Fatalf("%d hooks stored, %v", len(stored), err)
	}
	for i, endpoint := range []string{"healthy", "slow", "fail", "hang"} {
		if stored[i].URI != r.URL(endpoint) {
			t.Errorf("hook %s calls %s, the receiver listens at %s", stored[i].Name, stored[i].URI, r.URL(endpoint))
		}
	}
}

func TestDemoTeachesTheReceiverItsKeys(t *testing.T) {
	d, r := newDemo(t, stacktest.Phorge(t, ""))
	healthy := d.Hooks()[0]
	status, err := post(t.Context(), healthy.URI, sign(healthy.Key, receiverBody), receiverBody)
	if err != nil || status != 200 {
		t.Errorf("a call signed with the stored key: %d, %v", status, err)
	}
	if got := r.Counts("healthy").Verified; got != 1 {
		t.Errorf("%d calls verified, want 1", got)
	}
}

func TestDemoInstallationsDoNotShareKeys(t *testing.T) {
	a, _ := newDemo(t, stacktest.Phorge(t, ""))
	b, _ := newDemo(t, stacktest.Phorge(t, ""))
	seen := map[string]bool{}
	for _, h := range append(a.Hooks(), b.Hooks()...) {
		if seen[h.Key] {
			t.Error("two hooks share a key")
		}
		seen[h.Key] = true
	}
}

func TestDemoTrickles(t *testing.T) {
	p := stacktest.Phorge(t, "")
	d, _ := newDemo(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	hooks := d.Hooks()
	deadline := time.After(30 * time.Second)
	for queued(t, p, hooks[0].PHID) <= 10 { // the eleventh: the tenth is complete
		select {
		case <-deadline:
			t.Fatal("fewer than eleven rows in 30 s")
		case err := <-ended:
			t.Fatalf("ended early: %v", err)
		default:
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := queued(t, p, hooks[1].PHID); got < 2 {
		t.Errorf("%d rows for the slow hook after ten events, want 2", got)
	}
	if got := queued(t, p, hooks[3].PHID); got != 0 {
		t.Errorf("%d rows for the hanging hook, want none", got)
	}
}

func TestDemoSaysWhenTheDatabaseIsGone(t *testing.T) {
	p := stacktest.Phorge(t, "")
	d, r := newDemo(t, p)
	if err := p.DB.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context()); err == nil {
		t.Error("the trickle ended without an error")
	}
	if _, err := d.Enqueue(t.Context()); err == nil {
		t.Error("queued into a closed database")
	}
	if _, err := devstack.NewDemo(t.Context(), devstack.DemoConfig{Phorge: p, Receiver: r}); err == nil {
		t.Error("a demo without a database")
	}
}

func TestDemoQueuesAsManyAsAskedFor(t *testing.T) {
	p := stacktest.Phorge(t, "")
	d, _ := newDemo(t, p)
	slow, err := d.Hook("slow")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.EnqueueTo(t.Context(), "slow", 1203); err != nil {
		t.Fatal(err)
	}
	if got := queued(t, p, slow.PHID); got != 1203 {
		t.Errorf("%d rows, want 1203", got)
	}
	if err := d.EnqueueTo(t.Context(), "slwo", 1); err == nil || !strings.Contains(err.Error(), "healthy, slow, failing, hanging") {
		t.Errorf("a hook that is not there: %v", err)
	}
	if endpoint, err := d.Endpoint("failing"); endpoint != "fail" || err != nil {
		t.Errorf("failing calls %q, %v", endpoint, err)
	}
	if _, err := d.Endpoint("none"); err == nil {
		t.Error("a hook that is not there has an endpoint")
	}
}
