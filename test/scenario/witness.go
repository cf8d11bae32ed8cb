package scenario

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Call is one POST as the receiver saw it, from the first moment it could know
// of it to the last moment before the caller could know of an answer. Two calls
// whose times overlap here were in progress at once, whatever the machine's
// scheduler did to the receiver.
type Call struct {
	Hook, Row  string // hook's name; request's PHID, see Load
	Caller     string // ByWaybill or ByPhorge
	PID        int    // the calling process, 0 where it could not be found out
	Start, End time.Time
	Status     int // 0: no answer was given
	// Partial is set when the body broke off: nobody can have acted on it.
	Partial   bool
	Signature string
	Body      []byte
}

// Who calls.
const (
	ByWaybill = "waybill"
	ByPhorge  = "phorge"
)

// OK says whether it was answered with success.
func (c Call) OK() bool { return c.Status/100 == 2 }

// WitnessConfig says how a Witness looks.
type WitnessConfig struct {
	// Now stamps calls. It must be the clock that the database shows.
	Now func() time.Time
	// Callers are the processes that may call, see Fleet.PIDs; nil for "do not
	// look who calls".
	Callers func() []int
}

// Witness is a receiver that keeps beginning and end of every call. Its paths
// are /<behaviour>/<hook's name>, see Behaviours.
type Witness struct {
	cfg    WitnessConfig
	server *httptest.Server
	closed chan struct{}

	mu    sync.Mutex
	calls []*Call
	open  map[*Call]net.Conn
	rows  map[string]int // calls so far, by row
	hooks map[string]int // calls so far, by hook
	begun map[string]int // the same, with those whose body was not read
}

// NewWitness listens on loopback until the test ends.
func NewWitness(t testing.TB, cfg WitnessConfig) *Witness {
	t.Helper()
	w := &Witness{
		cfg: cfg, closed: make(chan struct{}), open: map[*Call]net.Conn{},
		rows: map[string]int{}, hooks: map[string]int{}, begun: map[string]int{},
	}
	w.server = httptest.NewUnstartedServer(w)
	w.server.Config.ConnContext = w.meet
	w.server.Start()
	t.Cleanup(func() {
		close(w.closed)
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// URL is where a hook of that name is called for a behaviour.
func (w *Witness) URL(behaviour, hook string) string {
	return w.server.URL + "/" + behaviour + "/" + hook
}

// Calls are the calls so far, in order of their beginning. Those still under
// way have no end.
func (w *Witness) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Call, len(w.calls))
	for i, c := range w.calls {
		all[i] = *c
	}
	slices.SortStableFunc(all, func(a, b Call) int { return a.Start.Compare(b.Start) })
	return all
}

// UnderWay is how many calls are in progress.
func (w *Witness) UnderWay() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.open)
}

type connKey struct{}

// meet keeps a connection for its calls.
func (w *Witness) meet(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// ServeHTTP takes one call.
func (w *Witness) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	behaviour, hook, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	c := &Call{Hook: hook, Caller: ByWaybill, Signature: r.Header.Get(signatureHeader)}
	if r.UserAgent() == CallerName {
		c.Caller = ByPhorge
	}
	nth := w.begin(c, conn)
	pid := w.whoHas(conn)
	if behaviour == Slamming && nth%2 == 1 {
		w.mu.Lock()
		c.PID, c.Partial = pid, true
		w.mu.Unlock()
		w.end(c, 0)
		drop(rw)
		return
	}
	body, err := io.ReadAll(r.Body)
	status := 0
	if err == nil {
		status = w.answer(r.Context(), behaviour, w.name(c, body))
	}
	w.mu.Lock()
	c.PID, c.Partial = pid, err != nil
	w.mu.Unlock()
	w.end(c, status)
	switch status {
	case 0:
		drop(rw)
	case half:
		halve(rw)
	default:
		rw.WriteHeader(status)
	}
}

// halve sends an answer and the beginning of its body, and resets.
func halve(rw http.ResponseWriter) {
	rw.Header().Set("Content-Length", "2")
	_, _ = io.WriteString(rw, "1")
	_ = http.NewResponseController(rw).Flush()
	drop(rw)
}

// whoHas looks for the caller while it waits for its answer.
func (w *Witness) whoHas(conn net.Conn) int {
	if w.cfg.Callers == nil {
		return 0
	}
	return pidOf(conn, w.cfg.Callers())
}

// begin notes a call and says the how manieth of its hook it is. Calls of the same hook whose caller has hung up are over:
// that is asked of the socket, because the news may not have got through yet.
func (w *Witness) begin(c *Call, conn net.Conn) (nth int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Start = w.cfg.Now()
	for other, conn := range w.open {
		if other.Hook == c.Hook && other.End.IsZero() && hungUp(conn) {
			other.End = c.Start
		}
	}
	w.calls = append(w.calls, c)
	w.open[c] = conn
	w.begun[c.Hook]++
	return w.begun[c.Hook]
}

// end notes the last moment before the caller can know of an answer.
func (w *Witness) end(c *Call, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
	if c.End.IsZero() {
		c.End, c.Status = w.cfg.Now(), status
	}
}

// name finds out which row a call is for, and how many there were before it.
func (w *Witness) name(c *Call, body []byte) (nth turn) {
	row := rowOf(body)
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Row, c.Body = row, body
	w.rows[row]++
	w.hooks[c.Hook]++
	return turn{w.rows[row], w.hooks[c.Hook]}
}

// rowOf reads the request's PHID from a body. Waybill's document does not name
// it, so Load makes it the only trigger; the player sends nothing else.
func rowOf(body []byte) string {
	var document struct {
		Triggers []struct {
			PHID string `json:"phid"`
		} `json:"triggers"`
	}
	if json.Unmarshal(body, &document) != nil || len(document.Triggers) != 1 {
		return string(body)
	}
	return document.Triggers[0].PHID
}

// drop ends the connection with a reset.
func drop(rw http.ResponseWriter) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
