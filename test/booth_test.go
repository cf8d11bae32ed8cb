package acceptance

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"waybill/test/scenario"
)

// booth is a receiver for one story about one row: it answers warm calls with
// 200; then the first call, held until the test lets it go, with 500, and others
// too while it is told to; then all with 200. It keeps what came and how many at
// once.
type booth struct {
	server *httptest.Server
	first  chan struct{} // closed: the first call need not wait (any more)

	mu        sync.Mutex
	warm      bool
	failing   bool
	got       []visit
	now, most int
}

// visit is one call of a booth.
type visit struct{ path, object, body, signature string }

func newBooth(t *testing.T) *booth {
	b := &booth{first: make(chan struct{})}
	b.server = httptest.NewServer(http.HandlerFunc(b.answer))
	t.Cleanup(func() {
		b.letGo()
		b.server.CloseClientConnections()
		b.server.Close()
	})
	return b
}

// url is where hooks call it; all paths are the same booth.
func (b *booth) url(path string) string { return b.server.URL + path }

// letGo answers the first call, also one that is still to come.
func (b *booth) letGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.first:
	default:
		close(b.first)
	}
}

func (b *booth) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n := b.enter(visit{path: r.URL.Path, object: objectIn(body), body: string(body), signature: r.Header.Get(signatureName)})
	defer b.leave()
	if n == 1 {
		select {
		case <-b.first:
		case <-r.Context().Done():
		}
	}
	if n == 1 || (n > 0 && b.fails()) {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// signatureName is Phorge's header for it.
const signatureName = "X-Phabricator-Webhook-Signature"

// objectIn reads which object a document is about, empty when it says none.
func objectIn(body []byte) string {
	var document struct{ Object struct{ PHID string } }
	_ = json.Unmarshal(body, &document)
	return document.Object.PHID
}

// enter counts a call; 0 for a warm one.
func (b *booth) enter(v visit) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now++
	b.most = max(b.most, b.now)
	if b.warm {
		return 0
	}
	b.got = append(b.got, v)
	return len(b.got)
}

func (b *booth) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now--
}

func (b *booth) setWarm(warm bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.warm = warm
}

// fail makes all calls fail, or only the first.
func (b *booth) fail(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = all
}

func (b *booth) fails() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failing
}

// calls are those that came, warm ones left out.
func (b *booth) calls() []visit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]visit(nil), b.got...)
}

// about counts the calls about an object.
func (b *booth) about(object string) (n int) {
	for _, v := range b.calls() {
		if v.object == object {
			n++
		}
	}
	return n
}

// held is how many it has at this moment, atOnce the most it ever had.
func (b *booth) held() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *booth) atOnce() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

func (b *booth) awaitCall(t *testing.T) {
	t.Helper()
	scenario.Until(t, patience, "a call is held", func() bool { return b.held() > 0 })
}
