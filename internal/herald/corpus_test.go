package herald

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// recorded is one case of the corpus: rows before and after PHP had them, and
// what PHP put on the wire in between.
type recorded struct {
	Name     string         `json:"case"`
	Endpoint string         `json:"endpoint"`
	Setup    map[string]any `json:"setup"`
	Hook     struct {
		PHID, URI, Status string
		HMACKey           string `json:"hmacKey"`
	} `json:"hook"`
	Before   rows     `json:"before"`
	After    rows     `json:"after"`
	Requests [][]byte `json:"requests"`
	Expect   struct {
		Compare, Target string
		ErrorCode       int `json:"errorCode"`
	} `json:"expect"`
}

// rows is one row or a list of them.
type rows []row

type row struct {
	ID          uint64 `json:"id"`
	PHID        string `json:"phid"`
	WebhookPHID string `json:"webhookPHID"`
	ObjectPHID  string `json:"objectPHID"`
	Status      Status `json:"status"`
	Properties  string `json:"properties"`
	LastResult  Result `json:"lastRequestResult"`
	LastEpoch   int64  `json:"lastRequestEpoch"`
	Created     int64  `json:"dateCreated"`
	Modified    int64  `json:"dateModified"`
}

func (r *rows) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		return json.Unmarshal(raw, (*[]row)(r))
	}
	*r = make(rows, 1)
	return json.Unmarshal(raw, &(*r)[0])
}

func (r row) request() Request {
	return Request{
		ID: r.ID, PHID: r.PHID, HookPHID: r.WebhookPHID, ObjectPHID: r.ObjectPHID,
		Status: r.Status, Properties: []byte(r.Properties), LastResult: r.LastResult,
		LastEpoch: r.LastEpoch, Created: r.Created, Modified: r.Modified,
	}
}

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatal(path, err)
	}
}

func corpus(t testing.TB) []recorded {
	t.Helper()
	var file struct {
		Cases []recorded `json:"cases"`
	}
	readJSON(t, "testdata/corpus.json", &file)
	if len(file.Cases) < 180 {
		t.Fatalf("only %d cases", len(file.Cases))
	}
	return file.Cases
}

type transactionRow struct {
	ID         int    `json:"id"`
	PHID       string `json:"phid"`
	ObjectPHID string `json:"objectPHID"`
}

// existing plays Phorge's transaction table: which of the PHIDs exist for the
// object, newest first.
func existing(t testing.TB, object string, phids []string) []string {
	t.Helper()
	var file struct {
		Transactions []transactionRow `json:"maniphest_transaction"`
	}
	readJSON(t, "testdata/objects.json", &file)
	table := file.Transactions
	slices.SortFunc(table, func(a, b transactionRow) int { return b.ID - a.ID })
	var found []string
	for _, r := range table {
		if r.ObjectPHID == object && slices.Contains(phids, r.PHID) {
			found = append(found, r.PHID)
		}
	}
	return found
}

// wire is a recorded request taken apart by hand, because net/http would
// repair the very bytes under test.
type wire struct {
	target  string
	headers map[string]string
	body    []byte
}

func parseWire(t *testing.T, raw []byte) wire {
	t.Helper()
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("no end of headers in %q", raw)
	}
	lines := strings.Split(string(head), "\r\n")
	target := strings.TrimSuffix(strings.TrimPrefix(lines[0], "POST "), " HTTP/1.1")
	w := wire{target: target, headers: map[string]string{}, body: body}
	for _, l := range lines[1:] {
		name, v, _ := strings.Cut(l, ": ")
		w.headers[name] = v
	}
	return w
}

// differences lists what Waybill would send otherwise than recorded.
func (w wire) differences(t *testing.T, c recorded, r row) []string {
	t.Helper()
	var out []string
	check := func(what, got, want string) {
		if got != want {
			out = append(out, what+": got "+got+", want "+want)
		}
	}
	p, err := ParseProperties([]byte(r.Properties))
	if err != nil {
		return []string{err.Error()}
	}
	target, err := ParseURI(c.Hook.URI)
	if err != nil {
		return []string{err.Error()}
	}
	body := Document(r.request(), p, existing(t, r.ObjectPHID, p.TransactionPHIDs()))
	mac := hmac.New(sha256.New, []byte(c.Hook.HMACKey))
	mac.Write(body)
	authorization := ""
	if target.User != nil {
		authorization = target.User.BasicAuth()
	}
	check("body", string(body), string(w.body))
	check("signature", hex.EncodeToString(mac.Sum(nil)), w.headers["X-Phabricator-Webhook-Signature"])
	check("target", target.RequestTarget, w.target)
	check("host", target.Host, w.headers["Host"])
	check("authorization", authorization, w.headers["Authorization"])
	return out
}

// behaviours is what a correct client observes of the recorded receivers.
var behaviours = map[string]Answer{
	"status200": {HTTPStatus: 200}, "status201": {HTTPStatus: 201}, "status204": {HTTPStatus: 204},
	"status205": {HTTPStatus: 205}, "status206": {HTTPStatus: 206}, "status226": {HTTPStatus: 226},
	"status304": {HTTPStatus: 304}, "status400": {HTTPStatus: 400}, "status404": {HTTPStatus: 404},
	"status410": {HTTPStatus: 410}, "status417": {HTTPStatus: 417}, "status429": {HTTPStatus: 429},
	"status500": {HTTPStatus: 500}, "status503": {HTTPStatus: 503}, "status599": {HTTPStatus: 599},
	"status999": {HTTPStatus: 999}, "redir302noloc": {HTTPStatus: 302},
	"cont100": {HTTPStatus: 200}, "noreason": {HTTPStatus: 200}, "noreasonsp": {HTTPStatus: 200},
	"slow14": {HTTPStatus: 200}, "trickle": {HTTPStatus: 200, Timeout: true},
	"hang": {Timeout: true}, "hanghdr": {Timeout: true},
	"close": {Curl: CurlClosed}, "reset": {Curl: CurlReset},
	"conn200": {Curl: CurlNotHTTP}, "garbage": {Curl: CurlNotHTTP}, "ssh": {Curl: CurlNotHTTP},
	"headeronly": {Curl: CurlNotHTTP}, "upg101": {Curl: CurlClosed}, "manyhdr": {Curl: CurlReset},
	"h2": {HTTPStatus: 200}, "huge": {HTTPStatus: 200},
}

// TestCorpusWire compares every recorded request with what would be sent.
func TestCorpusWire(t *testing.T) {
	compared := 0
	for _, c := range corpus(t) {
		if len(c.Requests) == 0 || c.Name == "uri-decimal-ip" || c.Name == "uri-short-ip" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			switch c.Expect.Compare {
			case "exact", "wire":
				for _, d := range parseWire(t, c.Requests[0]).differences(t, c, c.Before[0]) {
					t.Error(d)
				}
			default:
				// Redirects and repeats are recorded among the requests, in
				// no useful order.
				compareAny(t, c)
			}
			compared++
		})
	}
	if compared < 100 {
		t.Errorf("only %d cases compared", compared)
	}
}

func compareAny(t *testing.T, c recorded) {
	t.Helper()
	if strings.Contains(c.Name, "redir") || c.Setup["urisByRound"] != nil {
		// The first hop was not recorded, only where PHP was led.
		if _, err := ParseURI(c.Hook.URI); err != nil {
			t.Error(err)
		}
		return
	}
	var last []string
	for _, raw := range c.Requests {
		if last = parseWire(t, raw).differences(t, c, c.Before[0]); len(last) == 0 {
			return
		}
	}
	t.Errorf("no recorded request matches, the last by %q", last)
}

// TestCorpusRows carries every exact case from the row before to the row after.
func TestCorpusRows(t *testing.T) {
	compared := 0
	for _, c := range corpus(t) {
		if c.Expect.Compare != "exact" || c.Setup["sqlStatus"] != nil {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			before, after := c.Before[0], c.After[0]
			got := outcome(t, c, before)
			if got.Properties != after.Properties {
				t.Errorf("properties\n got %s\nwant %s", got.Properties, after.Properties)
			}
			if got.Status != after.Status || got.LastResult != after.LastResult {
				t.Errorf("got %s/%s, want %s/%s", got.Status, got.LastResult, after.Status, after.LastResult)
			}
			if (got.LastEpoch != 0) != (after.LastEpoch != 0) {
				t.Errorf("epoch %d, want like %d", got.LastEpoch, after.LastEpoch)
			}
			compared++
		})
	}
	if compared < 100 {
		t.Errorf("only %d cases compared", compared)
	}
}

// outcome replays a case in the order of checks that the design gives.
func outcome(t *testing.T, c recorded, r row) row {
	t.Helper()
	p, err := ParseProperties([]byte(r.Properties))
	if err != nil {
		return r
	}
	v := judge(t, c, r, p)
	r.Status, r.LastResult = v.Status, v.Result
	r.Properties = string(p.WithError(v.ErrorType, v.Code))
	if v.Completed {
		r.LastEpoch = r.Created + 1
	}
	return r
}

func judge(t *testing.T, c recorded, r row, p Properties) Verdict {
	t.Helper()
	_, bad := ParseURI(c.Hook.URI)
	switch {
	case Hook{Status: c.Hook.Status}.Disabled():
		return HookFailure(HookDisabled)
	case bad != nil:
		return HookFailure(HookURI)
	case c.Setup["blacklist"] != nil:
		return Decide(Answer{Denied: true}, p.RetryForever())
	case strings.HasPrefix(c.Name, "object-m"):
		return HookFailure(HookObject)
	case c.Name == "uri-https-noport-refused":
		return Decide(Answer{Curl: CurlRefused}, p.RetryForever())
	}
	// The path names the behaviour; cases without one have no case of their own.
	name := "status200"
	if _, path, ok := strings.Cut(c.Hook.URI, "/b/"); ok {
		name, _, _ = strings.Cut(path, "/")
	}
	if c.Name == "uri-dotdot" {
		name = "status204"
	}
	a, ok := behaviours[name]
	if !ok {
		t.Fatalf("behaviour %q is not in the table", name)
	}
	return Decide(a, p.RetryForever())
}

// TestCorpusVerdicts covers the http-* cases whose row is not exact.
func TestCorpusVerdicts(t *testing.T) {
	for _, c := range corpus(t) {
		a, ok := behaviours[c.Endpoint]
		if c.Expect.Compare == "differs" && c.Expect.ErrorCode != 0 {
			a = Answer{HTTPStatus: c.Expect.ErrorCode}
			want := Verdict{StatusFailed, ResultFail, ErrorHTTP, NumberCode(c.Expect.ErrorCode), true}
			if got := Decide(a, false); got != want {
				t.Errorf("%s: got %+v, want %+v", c.Name, got, want)
			}
			continue
		}
		if !ok || c.Expect.Compare != "wire" || !strings.HasPrefix(c.Name, "http-") {
			continue
		}
		p, err := ParseProperties([]byte(c.Before[0].Properties))
		if err != nil {
			t.Fatal(c.Name, err)
		}
		v := Decide(a, p.RetryForever())
		if v.Status != c.After[0].Status || v.Result != c.After[0].LastResult {
			t.Errorf("%s: got %+v, want %+v", c.Name, v, c.After[0])
		}
		if got := string(p.WithError(v.ErrorType, v.Code)); got != c.After[0].Properties {
			t.Errorf("%s: got %s, want %s", c.Name, got, c.After[0].Properties)
		}
	}
}

// TestCorpusURIs: what PHP refused, or accepted and could not send, is refused;
// everything that reached a receiver is accepted.
func TestCorpusURIs(t *testing.T) {
	// Accepted by PHP and sent; refused here on purpose.
	differs := map[string]bool{"uri-decimal-ip": true, "uri-short-ip": true}
	// Nobody listens on port 80 of the recording machine.
	unsent := map[string]bool{
		"uri-portempty": true, "uri-query-nopath-nocolon": true, "uri-https-noport-refused": true,
	}
	for _, c := range corpus(t) {
		if !strings.HasPrefix(c.Name, "uri-") {
			continue
		}
		accepted := (len(c.Requests) > 0 || unsent[c.Name]) && !differs[c.Name]
		_, err := ParseURI(c.Hook.URI)
		if accepted != (err == nil) {
			t.Errorf("%s: accepted is %v, want %v (%v)", c.Name, err == nil, accepted, err)
		}
	}
}

// The base64 of a recorded body must survive our reading of the corpus.
func TestCorpusIsReadAsRecorded(t *testing.T) {
	for _, c := range corpus(t) {
		for _, raw := range c.Requests {
			if w := parseWire(t, raw); w.headers["Content-Type"] != "application/json" && len(w.body) > 0 {
				t.Errorf("%s: %s", c.Name, base64.StdEncoding.EncodeToString(raw))
			}
		}
	}
}
