package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// backoff is the shortest that Waybill accepts.
const backoff = 3 * time.Second

// lane is one serve with everything around it, shared by tests whose hooks are
// their own.
type lane struct {
	*scenario.Site
	serve    *scenario.Process
	receiver *scenario.Receiver
	object   string
}

// newLane starts it, with the shortest backoff.
func newLane(t *testing.T, changes map[string]string) lane {
	t.Helper()
	settings := map[string]string{"WAYBILL_HERALD_RETRY_BACKOFF": backoff.String(), "WAYBILL_HERALD_DELIVERY_TIMEOUT": "2s"}
	for name, value := range changes {
		settings[name] = value
	}
	l := lane{Site: scenario.NewSite(t, &program), receiver: scenario.NewReceiver(t, nil, time.Now)}
	l.object = task(t, l.Site)
	l.serve = l.Serve(t, settings)
	return l
}

// hook creates a hook whose receiver behaves in a way; the name tells its
// requests from others'.
func (l lane) hook(t *testing.T, behaviour, name string) devstack.Hook {
	t.Helper()
	return hook(t, l.Site, l.receiver.URL(behaviour, name))
}

// One serve, many hooks: what one of them does concerns no other, so these
// properties are shown side by side.
func TestServe(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	properties := map[string]func(*testing.T, lane){
		"a row from the editor arrives newest first and keeps its keys": editorRow,
		"transactions are sent only if they exist":                      missingTransactions,
		"the three shapes that Phorge writes arrive":                    threeShapes,
		"a forever row is tried again, never before its backoff":        foreverRow,
		"a never row fails for good":                                    neverRow,
		"a configuration failure is written without a POST":             configurationFailures,
		"failure, silence, success: one row's three rounds":             threeRounds,
		"rows of one hook arrive one at a time, oldest first":           oneAtATime,
		"a connection that ends after an answer costs nothing":          connectionsEnd,
		"nothing is sent while another session holds the hook's lock":   lockHeld,
		"ten failing rows stop their hook":                              breaker,
		"a silenced row stays as Phorge left it":                        silencedRow,
		"a hook may change and vanish at any time":                      hookChanges,
		"a collected row ends quietly":                                  collectedRow,
	}
	for name, show := range properties {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			show(t, l)
		})
	}
}

// As the editor writes it, transactionPHIDs is an object in the order of the
// edits; keys that Waybill has never heard of stand between the others.
func editorRow(t *testing.T, l lane) {
	phids, err := l.AddTransactions(t.Context(), "PHID-USER-aaaaaaaaaaaaaaaaaaaa", l.object, 3)
	if err != nil {
		t.Fatal(err)
	}
	h := l.hook(t, "status200", "editor")
	const before = `{"retry":"forever","zeta" : 1.0,"transactionPHIDs":{"%[1]s":"%[1]s","%[2]s":"%[2]s","%[3]s":"%[3]s"},` +
		`"triggerPHIDs":["PHID-HRUL-bbbbbbbbbbbbbbbbbbbb"],"empty":{},"big":12345678901234567890,"u":"\u00e9é\/","silent":false,"secure":true`
	properties := fmt.Sprintf(before, phids[0], phids[1], phids[2])
	r := queue(t, l.Site, h, l.object, properties+"}")
	got := await(t, l.Site, r.PHID, "sent", "okay")
	if want := properties + httpError("200"); got.Properties != want {
		t.Errorf("properties\n got %s\nwant %s", got.Properties, want)
	}
	w := scenario.ParseWire(l.receiver.Await(t, "editor", 1, patience)[0].Raw)
	slices.Reverse(phids)
	if got := mentioned(w.Body, phids); !slices.Equal(got, phids) {
		t.Errorf("transactions in the body %v, want %v\n%s", got, phids, w.Body)
	}
	if !strings.Contains(w.Body, fmt.Sprintf(`"epoch": %d`, r.Created)) || !strings.Contains(w.Body, `"secure": true`) {
		t.Errorf("body %s", w.Body)
	}
}

// mentioned are those of the PHIDs that a body has, in the body's order.
func mentioned(body string, phids []string) []string {
	var found []string
	for line := range strings.Lines(body) {
		for _, phid := range phids {
			if strings.Contains(line, `"`+phid+`"`) {
				found = append(found, phid)
			}
		}
	}
	return found
}

// Transactions of another object, and such as never were, are left out.
func missingTransactions(t *testing.T, l lane) {
	const author = "PHID-USER-aaaaaaaaaaaaaaaaaaaa"
	mine, err := l.AddTransactions(t.Context(), author, l.object, 1)
	if err != nil {
		t.Fatal(err)
	}
	others, err := l.AddTransactions(t.Context(), author, task(t, l.Site), 1)
	if err != nil {
		t.Fatal(err)
	}
	never := devstack.NewTransactionPHID("TASK")
	properties := fmt.Sprintf(`{"retry":"never","transactionPHIDs":[%q,%q,%q],"triggerPHIDs":[]}`, others[0], mine[0], never)
	r := queue(t, l.Site, l.hook(t, "status200", "existing"), l.object, properties)
	await(t, l.Site, r.PHID, "sent", "okay")
	w := scenario.ParseWire(l.receiver.Await(t, "existing", 1, patience)[0].Raw)
	if got := mentioned(w.Body, []string{others[0], mine[0], never}); !slices.Equal(got, mine) {
		t.Errorf("transactions %v, want %v", got, mine)
	}
}

// Editor, test button and command line: devstack writes them as Phorge does.
func threeShapes(t *testing.T, l lane) {
	object := task(t, l.Site)
	if _, err := l.AddTransactions(t.Context(), "PHID-USER-aaaaaaaaaaaaaaaaaaaa", object, 4); err != nil {
		t.Fatal(err)
	}
	h := l.hook(t, "status200", "shapes")
	editor, err := l.EnqueueEditor(t.Context(), devstack.Edit{Hook: h.PHID, Object: object, Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	button, err := l.EnqueueTest(t.Context(), h.PHID, object, "PHID-USER-bbbbbbbbbbbbbbbbbbbb")
	if err != nil {
		t.Fatal(err)
	}
	line, err := l.EnqueueCommandLine(t.Context(), devstack.Call{Hook: h.PHID, Object: object, Secure: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, phid := range []string{editor, button, line} {
		await(t, l.Site, phid, "sent", "okay")
	}
	for _, r := range l.receiver.Await(t, "shapes", 3, patience) {
		w := scenario.ParseWire(r.Raw)
		if want := hexadecimal(sign(h.Key, w.Body)); w.Signature() != want {
			t.Errorf("signature %s, want %s", w.Signature(), want)
		}
	}
}

// Each hook has a queue of its own, walked from its oldest row, and never two
// calls at once: the next one comes only after the answer to the last.
func oneAtATime(t *testing.T, l lane) {
	h := l.hook(t, "status200", "keepalive-3")
	var rows []devstack.Row
	for range 8 {
		rows = append(rows, queue(t, l.Site, h, task(t, l.Site), never))
	}
	for _, r := range rows {
		await(t, l.Site, r.PHID, "sent", "okay")
	}
	got := l.receiver.Await(t, "keepalive-3", len(rows), patience)
	if len(got) != len(rows) {
		t.Errorf("%d requests for %d rows", len(got), len(rows))
	}
	for i, r := range got[:min(len(got), len(rows))] {
		if !strings.Contains(string(r.Raw), rows[i].ObjectPHID) {
			t.Errorf("request %d is not about row %d", i, i)
		}
		if r.Nth != 1 {
			t.Errorf("request %d was the %d. on its connection: an idle connection can die under a POST", i, r.Nth)
		}
	}
}

// Receivers may close when they have answered, redirect, or both.
func connectionsEnd(t *testing.T, l lane) {
	for behaviour, want := range map[string]struct{ status, code string }{
		"ok_then_close": {"sent", "200"}, "second_close": {"sent", "200"}, "redir302": {"failed", "302"},
	} {
		h := l.hook(t, behaviour, "ends-"+behaviour)
		for range 3 {
			r := queue(t, l.Site, h, l.object, never)
			scenario.Until(t, patience, "the row ends", func() bool { return row(t, l.Site, r.PHID).Status != "queued" })
			if got := row(t, l.Site, r.PHID); got.Status != want.status || ended(got) != httpError(want.code) {
				t.Errorf("%s: row is %s with %s", behaviour, got.Status, ended(got))
			}
		}
		if n := len(l.receiver.Case("ends-" + behaviour)); n != 3 {
			t.Errorf("%s: %d requests for 3 rows", behaviour, n)
		}
	}
}
