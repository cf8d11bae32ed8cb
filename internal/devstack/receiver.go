package devstack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The receiver's endpoints, each a path of one segment.
const (
	EndpointHealthy = "healthy" // 200 at once
	EndpointSlow    = "slow"    // 200 after ?ms=, two seconds without
	EndpointFail    = "fail"    // 503 until healed
	EndpointHang    = "hang"    // no answer while the caller waits, until healed
)

// signatureHeader is where Phorge, and so Waybill, puts the signature.
const signatureHeader = "X-Phabricator-Webhook-Signature"

const (
	// maxBody bounds what is read of a call; documents are some hundred bytes.
	maxBody = 1 << 20
	// defaultSlow is clearly slow to a watching person and far below the 15 s
	// a delivery may take.
	defaultSlow = 2 * time.Second
	// headerTimeout bounds a caller that connects and says nothing.
	headerTimeout = 10 * time.Second
)

// ReceiverConfig configures a demo receiver.
type ReceiverConfig struct {
	// Addr to listen on; empty for a free port on 127.0.0.1.
	Addr string
	// Clock gives the calls their times; required.
	Clock func() time.Time
	// OnCall hears of every call once it is over, from many goroutines. May be
	// nil.
	OnCall func(Received)
}

// Received is one call as the receiver saw it.
type Received struct {
	At         time.Time // of arrival
	Endpoint   string
	ObjectPHID string // empty when the body is no Herald document
	Verified   bool   // the signature fits one of the endpoint's keys
	Status     int    // what was answered; 0 for a caller that went away first
}

// Receiver is an HTTP server that plays the systems behind the demo's hooks.
// It checks signatures with code of its own, as a stranger's receiver would.
type Receiver struct {
	cfg     ReceiverConfig
	server  *http.Server
	addr    string
	closing chan struct{} // ends all calls
	once    sync.Once
	letGo   chan struct{} // ends calls that hang
	letting sync.Once

	mu     sync.Mutex
	keys   map[string][]string
	broken map[string]Failure // what is set here goes before an endpoint's own way
	counts map[string]Counts
}

// Failure is how a broken endpoint treats calls that are signed.
type Failure struct {
	Status int  // what it answers
	Hang   bool // it never answers, whatever Status says
}

// Counts are totals of one endpoint since the start.
type Counts struct{ Calls, Verified, Answered2xx int }

// StartReceiver listens and serves until Close.
func StartReceiver(ctx context.Context, cfg ReceiverConfig) (*Receiver, error) {
	if cfg.Addr == "" {
		cfg.Addr = loopback + ":0"
	}
	if cfg.OnCall == nil {
		cfg.OnCall = func(Received) {}
	}
	l, err := listen(ctx, cfg.Addr, "the demo receiver")
	if err != nil {
		return nil, err
	}
	r := &Receiver{
		cfg: cfg, addr: l.Addr().String(), closing: make(chan struct{}), letGo: make(chan struct{}),
		keys: map[string][]string{}, counts: map[string]Counts{},
		broken: map[string]Failure{EndpointFail: {Status: http.StatusServiceUnavailable}, EndpointHang: {Hang: true}},
	}
	r.server = &http.Server{Handler: r.routes(), ReadHeaderTimeout: headerTimeout}
	go func() { _ = r.server.Serve(l) }() // returns ErrServerClosed at Close
	return r, nil
}

func (r *Receiver) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{endpoint}", r.receive)
	return mux
}

// Close ends the server and every call that hangs in it.
func (r *Receiver) Close() error {
	r.once.Do(func() { close(r.closing) })
	return r.server.Close()
}

// LetGo ends the calls that hang, now and later, without an answer: nobody who
// stops a demo wants to wait for their deadline.
func (r *Receiver) LetGo() { r.letting.Do(func() { close(r.letGo) }) }

// Addr is host:port.
func (r *Receiver) Addr() string { return r.addr }

// URL is the address of an endpoint, as a hook's URI.
func (r *Receiver) URL(endpoint string) string { return "http://" + r.addr + "/" + endpoint }

// Trust adds a hook's key to those that may sign calls to the endpoint.
func (r *Receiver) Trust(endpoint, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[endpoint] = append(r.keys[endpoint], key)
}

// BreakAs makes an endpoint fail in that way until Heal.
func (r *Receiver) BreakAs(endpoint string, how Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken[endpoint] = how
}

// Heal makes an endpoint answer 200 from the next call on: "fail" and "hang"
// start broken, and "slow" stays slow.
func (r *Receiver) Heal(endpoint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.broken, endpoint)
}

// Counts returns an endpoint's totals.
func (r *Receiver) Counts(endpoint string) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[endpoint]
}

// receive plays one call: read, verify, behave, report.
func (r *Receiver) receive(w http.ResponseWriter, q *http.Request) {
	call := Received{At: r.cfg.Clock(), Endpoint: q.PathValue("endpoint")}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	if err == nil {
		call.ObjectPHID = objectOf(body)
		call.Verified = r.verify(call.Endpoint, body, q.Header.Get(signatureHeader))
		call.Status = r.behave(q, call)
	}
	// Counted before the answer leaves: who has an answer finds it counted.
	r.count(call)
	r.cfg.OnCall(call)
	if call.Status == 0 {
		// Returning would answer 200; this cuts the connection instead.
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(call.Status)
}

func (r *Receiver) count(call Received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[call.Endpoint]
	c.Calls++
	if call.Verified {
		c.Verified++
	}
	if call.Status/100 == 2 {
		c.Answered2xx++
	}
	r.counts[call.Endpoint] = c
}

// behave returns the status to answer, after whatever the endpoint does first;
// 0 when there is nobody left to answer.
func (r *Receiver) behave(q *http.Request, call Received) int {
	r.mu.Lock()
	failure, broken := r.broken[call.Endpoint]
	r.mu.Unlock()
	switch {
	case !known(call.Endpoint):
		return http.StatusNotFound
	case !call.Verified:
		// Before anything else: a stranger's call must have no effect.
		return http.StatusUnauthorized
	case broken && failure.Hang:
		return r.wait(q, -1)
	case broken:
		return failure.Status
	case call.Endpoint == EndpointSlow:
		return r.wait(q, slowness(q))
	}
	return http.StatusOK
}

func known(endpoint string) bool {
	switch endpoint {
	case EndpointHealthy, EndpointSlow, EndpointFail, EndpointHang:
		return true
	}
	return false
}

// slowness reads ?ms=, falling back to the default for what is no number.
func slowness(q *http.Request) time.Duration {
	ms, err := strconv.Atoi(q.URL.Query().Get("ms"))
	if err != nil || ms < 0 {
		return defaultSlow
	}
	return time.Duration(ms) * time.Millisecond
}

// wait holds a call for d, without end when d is negative, and answers 200; 0
// when the caller or the server went away first.
func (r *Receiver) wait(q *http.Request, d time.Duration) int {
	var over <-chan time.Time // nil: never
	letGo := r.letGo
	if d >= 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over, letGo = timer.C, nil
	}
	select {
	case <-over:
		return http.StatusOK
	case <-q.Context().Done():
	case <-letGo:
	case <-r.closing:
	}
	return 0
}

// verify compares in constant time with the signature under each key of the
// endpoint. An endpoint without keys verifies nothing.
func (r *Receiver) verify(endpoint string, body []byte, signature string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.keys[endpoint] {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		if hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature)) {
			return true
		}
	}
	return false
}

// objectOf reads the object's PHID out of a Herald document.
func objectOf(body []byte) string {
	var document struct {
		Object struct {
			PHID string `json:"phid"`
		} `json:"object"`
	}
	_ = json.Unmarshal(body, &document) // not a document: no PHID
	return document.Object.PHID
}
