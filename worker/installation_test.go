package worker

import (
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"

	"waybill/internal/devstack/stacktest"
	"waybill/workflows"
)

func taskQueue(t *testing.T, c client.Client, s *site, hooks ...string) string {
	t.Helper()
	q, err := TaskQueue(t.Context(), c, s.ledger, hooks)
	if err != nil || !strings.HasPrefix(q, "waybill-") {
		t.Fatalf("task queue %q, %v", q, err)
	}
	return q
}

// Processes that start at once agree on one name, and it stays.
func TestAnInstallationHasOneName(t *testing.T) {
	c, s := stacktest.Client(t), newSite(t)
	queues := make([]string, 8)
	var all sync.WaitGroup
	for i := range queues {
		all.Go(func() { queues[i] = taskQueue(t, c, s) })
	}
	all.Wait()
	for _, q := range queues {
		if q != queues[0] {
			t.Errorf("task queues %q", queues)
		}
	}
	if other := taskQueue(t, c, newSite(t)); other == queues[0] {
		t.Errorf("two installations on %q", other)
	}
}

// A database that was lost takes the name along. The workflows of the hooks
// still have it, and need somebody to poll their queue.
func TestALostNameIsFoundInTheHooksWorkflows(t *testing.T) {
	c, s := stacktest.Client(t), newSite(t)
	known, fresh := stacktest.Name("PHID-HWBH"), stacktest.Name("PHID-HWBH")
	before := taskQueue(t, c, s)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: workflows.HookID(known), TaskQueue: before}, "Hook")
	if err != nil {
		t.Fatal(err)
	}
	if after := taskQueue(t, c, newSite(t), fresh, known); after != before {
		t.Errorf("%q was found, not %q", after, before)
	}
	if after := taskQueue(t, c, newSite(t), fresh); after == before {
		t.Error("another installation's name was found")
	}
}

// Without an answer nothing is named: a guess would stay.
func TestNoNameWithoutAnAnswer(t *testing.T) {
	s := newSite(t)
	c, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if q, err := TaskQueue(t.Context(), c, s.ledger, []string{"PHID-HWBH-x"}); err == nil {
		t.Errorf("task queue %q", q)
	}
	if id, err := s.ledger.Installation(t.Context()); id != "" || err != nil {
		t.Errorf("name %q, %v", id, err)
	}
}
