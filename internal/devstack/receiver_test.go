package devstack_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"waybill/internal/devstack"
)

const (
	receiverKey  = "k3y-for-the-receivers-test-00001"
	receiverBody = "{\n  \"object\": {\n    \"type\": \"TASK\",\n    \"phid\": \"PHID-TASK-abcd\"\n  }\n}\n"
)

// epoch is the receiver's time in these tests.
var epoch = time.Unix(1_800_000_000, 0)

func startReceiver(t *testing.T) (*devstack.Receiver, <-chan devstack.Received) {
	t.Helper()
	calls := make(chan devstack.Received, 100)
	r, err := devstack.StartReceiver(t.Context(), devstack.ReceiverConfig{
		Clock:  func() time.Time { return epoch },
		OnCall: func(c devstack.Received) { calls <- c },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, calls
}

func sign(key, body string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

func post(ctx context.Context, url, signature, body string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Phabricator-Webhook-Signature", signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func TestReceiverVerifiesAndReports(t *testing.T) {
	good := sign(receiverKey, receiverBody)
	tests := []struct {
		name, endpoint, signature, body string
		want                            devstack.Received
	}{
		{"right", "healthy", good, receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Verified: true, Status: 200}},
		{"none", "healthy", "", receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 401}},
		{"another key", "healthy", sign("other", receiverBody), receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 401}},
		{"another body", "healthy", good, receiverBody + " ", devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 401}},
		{"upper case", "healthy", strings.ToUpper(good), receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 401}},
		{"another endpoint's key", "slow", good, receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 401}},
		{"no document", "healthy", sign(receiverKey, "x"), "x", devstack.Received{Verified: true, Status: 200}},
		{"unknown endpoint", "else", good, receiverBody, devstack.Received{ObjectPHID: "PHID-TASK-abcd", Status: 404}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, calls := startReceiver(t)
			r.Trust("healthy", "an older key")
			r.Trust("healthy", receiverKey)
			status, err := post(t.Context(), r.URL(tt.endpoint), tt.signature, tt.body)
			if err != nil || status != tt.want.Status {
				t.Errorf("answered %d, %v", status, err)
			}
			tt.want.At, tt.want.Endpoint = epoch, tt.endpoint
			if got := <-calls; got != tt.want {
				t.Errorf("reported %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReceiverCounts(t *testing.T) {
	r, _ := startReceiver(t)
	r.Trust("fail", receiverKey)
	good := sign(receiverKey, receiverBody)
	steps := []struct {
		before    func(string)
		signature string
		status    int
	}{
		{nil, good, 503},
		{r.Heal, good, 200},
		{nil, "wrong", 401},
		{func(endpoint string) { r.BreakAs(endpoint, devstack.Failure{Status: 503}) }, good, 503},
	}
	for i, s := range steps {
		if s.before != nil {
			s.before("fail")
		}
		if got, err := post(t.Context(), r.URL("fail"), s.signature, receiverBody); err != nil || got != s.status {
			t.Errorf("step %d: %d, %v, want %d", i, got, err, s.status)
		}
	}
	want := devstack.Counts{Calls: 4, Verified: 3, Answered2xx: 1}
	if got := r.Counts("fail"); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if got := r.Counts("healthy"); got != (devstack.Counts{}) {
		t.Errorf("counted %+v for an endpoint nobody called", got)
	}
}

// Who drives the demo does so over its socket: the receiver's port is open to
// every user of the machine.
func TestReceiverTakesNoOrdersOverHTTP(t *testing.T) {
	r, _ := startReceiver(t)
	r.Trust("healthy", receiverKey)
	for _, path := range []string{"break/healthy", "heal/fail"} {
		if got, err := post(t.Context(), r.URL(path), "", ""); err != nil || got != http.StatusNotFound {
			t.Errorf("%s: %d, %v", path, got, err)
		}
	}
	if got, err := post(t.Context(), r.URL("healthy"), sign(receiverKey, receiverBody), receiverBody); err != nil || got != 200 {
		t.Errorf("healthy answers %d, %v", got, err)
	}
}

func TestReceiverSlow(t *testing.T) {
	r, calls := startReceiver(t)
	r.Trust("slow", receiverKey)
	good := sign(receiverKey, receiverBody)
	if got, err := post(t.Context(), r.URL("slow?ms=30"), good, receiverBody); err != nil || got != 200 {
		t.Errorf("slow: %d, %v", got, err)
	}
	<-calls
	// A number it cannot read means the default, longer than this caller waits.
	for _, ms := range []string{"soon", "-1", ""} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := post(ctx, r.URL("slow?ms="+ms), good, receiverBody); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ms=%s: %v", ms, err)
		}
		cancel()
		if got := <-calls; got.Status != 0 || !got.Verified {
			t.Errorf("reported %+v", got)
		}
	}
}

func TestReceiverHangEndsWithTheServerAndIsNoAnswer(t *testing.T) {
	r, calls := startReceiver(t)
	r.Trust("hang", receiverKey)
	var answered atomic.Int64
	failed := make(chan error, 1)
	go func() {
		status, err := post(t.Context(), r.URL("hang"), sign(receiverKey, receiverBody), receiverBody)
		answered.Store(int64(status))
		failed <- err
	}()
	// Another endpoint works meanwhile.
	if got, err := post(t.Context(), r.URL("healthy"), "", receiverBody); err != nil || got != 401 {
		t.Errorf("healthy while another hangs: %d, %v", got, err)
	}
	<-calls
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Errorf("a hanging call was answered %d", answered.Load())
	}
}

func TestReceiverRefusesATakenPort(t *testing.T) {
	r, _ := startReceiver(t)
	_, err := devstack.StartReceiver(t.Context(), devstack.ReceiverConfig{Addr: r.Addr(), Clock: func() time.Time { return epoch }})
	if !errors.Is(err, devstack.ErrPortInUse) {
		t.Errorf("got %v, want ErrPortInUse", err)
	}
	// Another reason is not called that.
	_, err = devstack.StartReceiver(t.Context(), devstack.ReceiverConfig{Addr: "no address", Clock: func() time.Time { return epoch }})
	if err == nil || errors.Is(err, devstack.ErrPortInUse) {
		t.Errorf("for no address at all: %v", err)
	}
}

func TestReceiverDropsWhatIsTooLong(t *testing.T) {
	r, calls := startReceiver(t)
	r.Trust("healthy", receiverKey)
	body := strings.Repeat("x", 1<<20+1)
	if status, err := post(t.Context(), r.URL("healthy"), sign(receiverKey, body), body); err == nil && status/100 == 2 {
		t.Errorf("accepted %d bytes with %d", len(body), status)
	}
	if got := <-calls; got.Verified {
		t.Errorf("reported %+v", got)
	}
}

func TestReceiverFailsInTheWayItIsToldAndIsMended(t *testing.T) {
	r, calls := startReceiver(t)
	good := sign(receiverKey, receiverBody)
	for _, endpoint := range []string{"healthy", "hang", "fail"} {
		r.Trust(endpoint, receiverKey)
		r.BreakAs(endpoint, devstack.Failure{Status: 418})
		if got, err := post(t.Context(), r.URL(endpoint), good, receiverBody); err != nil || got != 418 {
			t.Errorf("%s with 418: %d, %v", endpoint, got, err)
		}
		r.Heal(endpoint)
		if got, err := post(t.Context(), r.URL(endpoint), good, receiverBody); err != nil || got != 200 {
			t.Errorf("%s healed: %d, %v", endpoint, got, err)
		}
		<-calls
		<-calls
	}
	r.BreakAs("healthy", devstack.Failure{Hang: true})
	ended := make(chan error, 1)
	go func() {
		_, err := post(t.Context(), r.URL("healthy"), good, receiverBody)
		ended <- err
	}()
	r.LetGo()
	r.LetGo() // twice is once
	if got := <-calls; got.Status != 0 || !got.Verified {
		t.Errorf("let go, reported %+v", got)
	}
	if err := <-ended; err == nil {
		t.Error("a call that was let go has an answer")
	}
}
