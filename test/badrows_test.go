package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// bad is a row that no Phorge in good health would write.
type bad struct {
	hook devstack.Hook // zero: the shared good one
	row  devstack.Row
	// end is "status/result error" for rows that fail for good, "sent" for
	// rows that are delivered all the same, "" for rows that stay untouched.
	end string
	// silent says that nothing need be reported: the row is not Waybill's.
	silent bool
}

// badRows are the rows, by what is wrong with them. l's hook gives them a URI
// that works.
func badRows(l lane) map[string]bad {
	good := l.receiver.URL("status200", "badrows")
	long := strings.Repeat("x", 3<<20)
	untouched := func(properties string) bad { return bad{row: devstack.Row{Properties: properties}} }
	return map[string]bad{
		"properties are not JSON":             untouched(`{"retry":`),
		"properties are empty":                untouched(``),
		"properties are a number":             untouched(`5`),
		"properties are a string":             untouched(`"never"`),
		"properties are null":                 untouched(`null`),
		"properties with a raw NUL":           untouched("{\"retry\":\"never\x00\"}"),
		"properties that end in a NUL":        untouched(never + "\x00"),
		"properties nested too deep":          untouched(`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`),
		"transaction PHIDs are a string":      untouched(`{"retry":"never","transactionPHIDs":"PHID-XACT-TASK-a","triggerPHIDs":[]}`),
		"trigger PHIDs are a string":          untouched(`{"retry":"never","transactionPHIDs":[],"triggerPHIDs":"PHID-HRUL-a"}`),
		"properties are a list":               {row: devstack.Row{Properties: `["never"]`}, end: "sent"},
		"properties are very long":            {row: devstack.Row{Properties: `{"retry":"never","long":"` + long + `"}`}, end: "sent"},
		"a status nobody knows":               {row: devstack.Row{Status: "zzz"}},
		"a result nobody knows":               {row: devstack.Row{LastResult: "zzz"}},
		"no object":                           {row: devstack.Row{ObjectPHID: "-"}, end: "failed/none " + hookError("object")},
		"an object with NUL":                  {row: devstack.Row{ObjectPHID: "PHID-TASK-\x00"}, end: "failed/none " + hookError("object")},
		"an object that is not text":          {row: devstack.Row{ObjectPHID: "PHID-TASK-\xff\xfe"}, end: "failed/none " + hookError("object")},
		"a version at the end of its range":   {row: devstack.Row{Modified: 4294967295, Created: 4294967295}},
		"made in the future":                  {row: devstack.Row{Age: -300 * 24 * time.Hour}, end: "sent"},
		"made in 1970":                        {row: devstack.Row{Created: 1, Modified: 1}, end: "sent"},
		"claimed in the future":               {row: devstack.Row{Age: time.Hour, Modified: 4294967000}, silent: true},
		"failed in the future":                {row: devstack.Row{Age: time.Hour, LastResult: "fail", LastEpoch: 4294967000}},
		"of a hook that has vanished":         {hook: devstack.Hook{PHID: "PHID-HWBH-vanishedvanishedvani", URI: "-"}},
		"of a hook without a key":             {hook: devstack.Hook{URI: good, Key: "-"}},
		"of a hook with a line break":         {hook: devstack.Hook{URI: good + "\r\nX-Evil: 1"}, end: "failed/none " + hookError("uri")},
		"of a hook with a NUL":                {hook: devstack.Hook{URI: good + "/\x00"}, end: "failed/none " + hookError("uri")},
		"of a hook with an over-long URI":     {hook: devstack.Hook{URI: "http://" + long + "/"}, end: "failed/none " + hookError("uri")},
		"of a hook whose status nobody knows": {hook: devstack.Hook{URI: good, Status: "zzz"}, end: "sent"},
		"of a hook with a long name":          {hook: devstack.Hook{URI: good, Name: strings.Repeat("\U0001F4E6", 128)}, end: "sent"},
	}
}

// All of them at once, beside good rows of the same hook and of others: nothing
// crashes or runs hot, each is reported once, the good ones arrive.
func TestBadRowsHurtNobody(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	shared := l.hook(t, "status200", "badrows")
	before, after := map[string]devstack.Row{}, map[string]devstack.Row{}
	var good []devstack.Row
	rows := badRows(l)
	for name, b := range rows {
		before[name] = l.enterBad(t, shared, b)
		good = append(good, queue(t, l.Site, shared, l.object, never)) // each stands behind a bad one
	}
	for _, r := range good {
		await(t, l.Site, r.PHID, "sent", "okay")
	}
	for name, b := range rows {
		t.Run(name, func(t *testing.T) {
			after[name] = l.badEnd(t, before[name], b)
		})
	}
	var runs int
	scenario.Until(t, patience, "visibility shows the workflows", func() bool {
		runs = len(l.Executions(t, "request/"))
		return runs > len(good)
	})
	looks := len(l.serve.Log.Lines())
	scenario.Never(t, 6*time.Second, "hot loop: log lines or workflows for rows that were dealt with", func() bool {
		return len(l.serve.Log.Lines()) > looks+3
	})
	if more := len(l.Executions(t, "request/")) - runs; more > len(rows) {
		t.Errorf("%d more workflow runs in six seconds", more)
	}
	if l.serve.Exited() {
		t.Error("serve has ended")
	}
	if text := l.serve.Log.String(); strings.Contains(text, "panic") {
		t.Error("a panic in the log")
	}
	for name := range rows {
		if now := row(t, l.Site, before[name].PHID); now != after[name] {
			t.Errorf("%s: the row changed later", name)
		}
	}
}

// enterBad inserts the row and, where it has its own, the hook.
func (l lane) enterBad(t *testing.T, shared devstack.Hook, b bad) devstack.Row {
	t.Helper()
	h := shared
	if b.hook.URI != "" {
		h = l.badHook(t, b.hook)
	}
	r := b.row
	r.HookPHID = h.PHID
	switch r.ObjectPHID {
	case "":
		r.ObjectPHID = l.object
	case "-":
		r.ObjectPHID = ""
	}
	if r.Properties == "" && (b.end != "" || b.silent || b.row != (devstack.Row{}) || b.hook.URI != "") {
		r.Properties = never
	}
	return insert(t, l.Site, r)
}

// badHook inserts a hook; "-" stands for an empty key, or for no hook at all.
func (l lane) badHook(t *testing.T, h devstack.Hook) devstack.Hook {
	t.Helper()
	if h.URI == "-" {
		return h
	}
	key := h.Key
	stored, err := l.CreateHook(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if key == "-" {
		execSQL(t, l.Site, "UPDATE "+l.Database("herald")+".herald_webhook SET hmacKey = '' WHERE phid = ?", stored.PHID)
	}
	return stored
}

// badEnd waits for a bad row's end and returns the row as it then stands.
func (l lane) badEnd(t *testing.T, before devstack.Row, b bad) devstack.Row {
	t.Helper()
	var r devstack.Row
	switch {
	case b.end == "sent":
		r = await(t, l.Site, before.PHID, "sent", "okay")
	case b.end != "":
		r = await(t, l.Site, before.PHID, "failed", "none")
		if got := fmt.Sprintf("%s/%s %s", r.Status, r.LastResult, ended(r)); got != b.end {
			t.Errorf("got %s, want %s", got, b.end)
		}
	case b.silent:
		r = row(t, l.Site, before.PHID)
	default:
		r = l.reportedOnce(t, before)
	}
	if b.end == "" && r != before {
		t.Errorf("the row changed:\n got %+v\nwant %+v", r, before)
	}
	return r
}

// reportedOnce waits until the log names the row, and wants one such line.
func (l lane) reportedOnce(t *testing.T, r devstack.Row) devstack.Row {
	t.Helper()
	scenario.Until(t, patience, "the row is reported", func() bool { return l.reports(r) > 0 })
	if n := l.reports(r); n != 1 {
		t.Errorf("reported %d times", n)
	}
	return row(t, l.Site, r.PHID)
}

// reports counts the lines that say the row cannot be processed.
func (l lane) reports(r devstack.Row) (n int) {
	for _, line := range l.serve.Log.Find("cannot be processed") {
		if id, _ := line["id"].(float64); int64(id) == r.ID {
			n++
		}
	}
	return n
}

// The column takes any bytes. A PHID that cannot be the name of a workflow is
// delivered or reported once, and the rows behind it arrive.
func TestARowWithAnUnspeakableNameHurtsNobody(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	for name, phid := range map[string]string{
		"NUL": "PHID-HWBR-\x00unspeakable", "not text": "PHID-HWBR-\xff\xfeunspeakable", "empty": "-", "a line break": "PHID-HWBR-a\r\nb",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := l.hook(t, "status200", "unspeakable")
			r := insert(t, l.Site, devstack.Row{PHID: phid, HookPHID: h.PHID, ObjectPHID: l.object, Properties: never})
			if phid == "-" {
				execSQL(t, l.Site, "UPDATE "+l.Database("herald")+".herald_webhookrequest SET phid = '' WHERE id = ?", r.ID)
				r.PHID = ""
			}
			good := queue(t, l.Site, h, l.object, never)
			await(t, l.Site, good.PHID, "sent", "okay")
			scenario.Until(t, patience, "the row is delivered or reported", func() bool {
				return row(t, l.Site, r.PHID).Status == "sent" || l.reports(r) > 0
			})
			lines := len(l.serve.Log.Lines())
			scenario.Never(t, 4*time.Second, "hot loop", func() bool { return len(l.serve.Log.Lines()) > lines+8 || l.reports(r) > 1 })
		})
	}
}
