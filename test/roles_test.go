package acceptance

import (
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// One process for each role does what serve does in one, and each can be asked
// how it is.
func TestRolesRunInProcessesOfTheirOwn(t *testing.T) {
	t.Parallel()
	site, receiver := scenario.NewSite(t, &program), scenario.NewReceiver(t, nil, time.Now)
	settings := map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String()}
	var processes []*scenario.Process
	for _, role := range []string{"api", "starter", "worker"} {
		processes = append(processes, site.Run(t, settings, role))
	}
	for _, p := range processes {
		p.AwaitReady(t)
	}
	object := task(t, site)
	h, failing := hook(t, site, receiver.URL("status200", "roles")), hook(t, site, receiver.URL("status500", "roles-failing"))
	var rows []devstack.Row
	for range 10 {
		rows = append(rows, queue(t, site, h, object, never))
	}
	retried := queue(t, site, failing, object, forever)
	for _, r := range rows {
		await(t, site, r.PHID, "sent", "okay")
	}
	receiver.Await(t, "roles-failing", 2, patience)
	if err := site.SetHookURI(t.Context(), failing.PHID, receiver.URL("status200", "roles-failing")); err != nil {
		t.Fatal(err)
	}
	await(t, site, retried.PHID, "sent", "okay")
	if n := len(receiver.Case("roles")); n != len(rows) {
		t.Errorf("%d requests for %d rows", n, len(rows))
	}
	scenario.Until(t, patience, "the api process counts the rows", func() bool {
		return processes[0].Get(t, "/api/webhook/stats", "").Body == `{"data":{"activeWebhooks":2,"failedCount":0,"queuedCount":0,"sentCount":11}}`+"\n"
	})
	for _, p := range processes {
		if code := p.Stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}
