package acceptance

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill/internal/devstack"
	"waybill/internal/egress/rawsink"
	"waybill/test/scenario"
)

// recordedWithin bounds a run of recorded cases: the silent receivers take the
// delivery timeout of 15 s, all at once, the rest is the machine's.
const recordedWithin = 90 * time.Second

// What a real Phorge did, Waybill does: every recorded case that needs no more
// than a row and a receiver, through one real `waybill serve`.
func TestRecordedCasesHold(t *testing.T) {
	t.Parallel()
	cases := corpus(t, func(c recorded) bool {
		return c.Expect.Compare != "manual" && c.Setup.Blacklist == nil
	})
	receiver := scenario.ReceiverAt(t, recordedAt, time.Now)
	site := scenario.NewSite(t, &program)
	enter(t, site, cases)
	site.Serve(t, nil)
	judge(t, drained(t, site, cases), receiver.Requests(), cases)
}

// drained waits until every case that ends has ended, and returns the rows. A
// row that Phorge left alone has ended when its workflow has, and one that is
// not queued when all others have.
func drained(t *testing.T, s *scenario.Site, cases []recorded) map[string]devstack.Row {
	t.Helper()
	rows := map[string]devstack.Row{}
	var waiting []string
	scenario.Until(t, recordedWithin, func() string { return "all cases end, open: " + strings.Join(waiting, " ") }, func() bool {
		waiting = nil
		for _, c := range cases {
			r := row(t, s, c.Before[0].PHID)
			rows[c.Name] = r
			if !over(t, s, c, r) {
				waiting = append(waiting, c.Name)
			}
		}
		return len(waiting) == 0
	})
	return rows
}

func over(t *testing.T, s *scenario.Site, c recorded, r devstack.Row) bool {
	t.Helper()
	untouched := r.Status == c.Before[0].Status && r.LastResult == c.Before[0].LastResult
	switch {
	case !untouched || r.Status != "queued":
		return true
	case c.changes() && c.Expect.Compare == "exact":
		return false
	}
	return s.Closed(t, "request/"+r.PHID)
}

// traffic is what the receiver got and no case has accounted for yet.
type traffic []scenario.Wire

// take removes the first request that is wanted, and says whether there was one.
func (r *traffic) take(wanted func(scenario.Wire) bool) (scenario.Wire, bool) {
	at := slices.IndexFunc(*r, wanted)
	if at < 0 {
		return scenario.Wire{}, false
	}
	w := (*r)[at]
	*r = slices.Delete(*r, at, at+1)
	return w, true
}

// judge compares everything with what was recorded. Requests are told apart by
// their bytes, not by their path: several cases share one.
func judge(t *testing.T, rows map[string]devstack.Row, got []rawsink.Request, cases []recorded) {
	t.Helper()
	var open traffic
	for _, r := range got {
		w := scenario.ParseWire(r.Raw)
		introduces(t, w)
		open = append(open, w)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			after := rows[c.Name]
			switch c.Expect.Compare {
			case "exact":
				judgeWire(t, c, &open)
				judgeExactRow(t, c, after)
			case "wire":
				judgeLenientWire(t, c, after, &open)
				judgeCleanRow(t, c, after)
			case "status":
				judgeUnsent(t, c, after, &open)
			case "differs":
				judgeDiffers(t, c, after, &open)
			default:
				t.Errorf("unknown comparison %q", c.Expect.Compare)
			}
			if after.Created != c.Before[0].Created {
				t.Errorf("dateCreated went from %d to %d", c.Before[0].Created, after.Created)
			}
		})
	}
	for _, w := range open {
		t.Errorf("a request that no case asked for:\n%s", w.Essence())
	}
}

// introduces checks what Waybill's requests have beside what Phorge's have:
// its name, and nothing that invites compression or a repeat.
func introduces(t *testing.T, w scenario.Wire) {
	t.Helper()
	if !strings.HasPrefix(w.Header["User-Agent"], "waybill/") {
		t.Errorf("%s: User-Agent %q", w.Line, w.Header["User-Agent"])
	}
	if w.Header["Content-Length"] != fmt.Sprint(len(w.Body)) {
		t.Errorf("%s: Content-Length %s for %d bytes", w.Line, w.Header["Content-Length"], len(w.Body))
	}
	known := []string{"Host", "User-Agent", "Content-Length", "Content-Type", "Authorization",
		"X-Phabricator-Webhook-Signature", "Connection"}
	for _, name := range w.Names {
		if !slices.Contains(known, name) {
			t.Errorf("%s: unexpected header %s", w.Line, name)
		}
	}
}

// judgeWire wants exactly the recorded requests.
func judgeWire(t *testing.T, c recorded, open *traffic) {
	t.Helper()
	for _, want := range c.wires() {
		if _, ok := open.take(func(w scenario.Wire) bool { return w.Essence() == want.Essence() }); ok {
			continue
		}
		near, _ := open.take(func(w scenario.Wire) bool { return w.Line == want.Line })
		t.Errorf("request\n got %s\nwant %s", near.Essence(), want.Essence())
	}
}

// judgeLenientWire is judgeWire where the target may be escaped instead, or the
// hook refused for it.
func judgeLenientWire(t *testing.T, c recorded, after devstack.Row, open *traffic) {
	t.Helper()
	if c.Expect.Target != "lenient" {
		judgeWire(t, c, open)
		return
	}
	got, sent := open.take(func(w scenario.Wire) bool { return strings.Contains(w.Line, "/"+c.Name+"/") })
	if !sent && ended(after) == hookError("uri") {
		return
	}
	want := c.wires()[0]
	got.Line = want.Line
	if got.Essence() != want.Essence() {
		t.Errorf("request\n got %s\nwant %s", got.Essence(), want.Essence())
	}
}

func judgeExactRow(t *testing.T, c recorded, after devstack.Row) {
	t.Helper()
	want := c.After[0]
	if after.Status != want.Status || after.LastResult != want.LastResult {
		t.Errorf("row is %s/%s, want %s/%s", after.Status, after.LastResult, want.Status, want.LastResult)
	}
	if after.Properties != want.Properties {
		t.Errorf("properties\n got %s\nwant %s", after.Properties, want.Properties)
	}
	if (after.LastEpoch != 0) != (want.LastEpoch != 0) {
		t.Errorf("lastRequestEpoch %d, want like %d", after.LastEpoch, want.LastEpoch)
	}
}

// judgeCleanRow wants a verdict that Phorge can show: a pair of status and
// result that goes together, an error that goes with it, everything else in
// the properties as it was.
func judgeCleanRow(t *testing.T, c recorded, after devstack.Row) {
	t.Helper()
	before := c.Before[0]
	if !c.changes() && after.Status == before.Status && after.Properties == before.Properties {
		return
	}
	clean := map[string]bool{
		"sent/okay": true, "failed/fail": true, "failed/none": true,
		"queued/fail": strings.Contains(before.Properties, `"retry":"forever"`),
	}
	if !clean[after.Status+"/"+after.LastResult] {
		t.Errorf("row is %s/%s", after.Status, after.LastResult)
	}
	if (after.LastEpoch != 0) != (after.LastResult != "none") {
		t.Errorf("result %s with lastRequestEpoch %d", after.LastResult, after.LastEpoch)
	}
	kept, errors := splitErrors(after.Properties)
	if kept != before.Properties {
		t.Errorf("properties\n got %s\nwant %s and an error", after.Properties, before.Properties)
	}
	want := map[bool]string{true: `,"errorType":"hook","errorCode":"`, false: `,"errorType":"`}[after.LastResult == "none"]
	if !strings.HasPrefix(errors, want) {
		t.Errorf("%s/%s with %s", after.Status, after.LastResult, errors)
	}
}

// judgeUnsent wants a failure for good, and nothing sent.
func judgeUnsent(t *testing.T, c recorded, after devstack.Row, open *traffic) {
	t.Helper()
	if w, sent := open.take(func(w scenario.Wire) bool { return strings.Contains(w.Line, c.Name) }); sent {
		t.Errorf("sent:\n%s", w.Essence())
	}
	if after.Status != "failed" {
		t.Errorf("row is %s/%s, want failed", after.Status, after.LastResult)
	}
	judgeCleanRow(t, c, after)
}

// judgeDiffers wants one request, whatever Phorge made of the answer, and the
// verdict that the first answer gives.
func judgeDiffers(t *testing.T, c recorded, after devstack.Row, open *traffic) {
	t.Helper()
	mine := func(w scenario.Wire) bool { return slices.Contains(segments(w.Line), c.Name) }
	got, sent := open.take(mine)
	if !sent {
		t.Fatal("nothing was sent")
	}
	if more, again := open.take(mine); again {
		t.Errorf("a second request:\n%s", more.Essence())
	}
	if want := hexadecimal(sign(c.Hook.HMACKey, got.Body)); got.Signature() != want || got.Body == "" {
		t.Errorf("signature %s of %d bytes, want %s", got.Signature(), len(got.Body), want)
	}
	for _, want := range c.wires() { // the first hop was not always recorded, and later ones lost their body
		if want.Line == got.Line && want.Body != "" && want.Essence() != got.Essence() {
			t.Errorf("request\n got %s\nwant %s", got.Essence(), want.Essence())
		}
	}
	judgeCleanRow(t, c, after)
	judgeCode(t, c, after)
}

// segments are the parts of a request line's path.
func segments(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("/ ?", r) })
}

// judgeCode wants the answer's own status in the row, and a result that goes
// by nothing else.
func judgeCode(t *testing.T, c recorded, after devstack.Row) {
	t.Helper()
	code := c.Expect.ErrorCode
	if code == 0 { // compressed answers: the endpoint's name ends in the status, or it is 200
		code = map[string]int{"gzip204": 204, "gzipbad500": 500}[c.Endpoint]
		if code == 0 {
			code = 200
		}
	}
	want := map[bool]string{true: "okay", false: "fail"}[code < 300]
	if after.LastResult != want || ended(after) != httpError(fmt.Sprint(code)) {
		t.Errorf("result %s with %s, want %s with %d", after.LastResult, ended(after), want, code)
	}
}

// sign computes Phorge's signature without any of Waybill's code.
func sign(key, body string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return mac.Sum(nil)
}

func hexadecimal(b []byte) string { return hex.EncodeToString(b) }
