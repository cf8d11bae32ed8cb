package scenario

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

// Reply is an answer of Waybill's HTTP interface.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// askWithin bounds one question to a local process.
const askWithin = 10 * time.Second

// URL is the base of the process's HTTP interface, as its log names it.
func (p *Process) URL(t testing.TB) string {
	t.Helper()
	var address string
	Until(t, Patience, "the HTTP interface listens", func() bool {
		if found := p.Log.Find("listening"); len(found) > 0 {
			address = found[0].Text("address")
		}
		return address != "" || p.Exited()
	})
	if address == "" {
		t.Fatalf("%s ended with %d instead of listening", p.name, p.cmd.ProcessState.ExitCode())
	}
	return "http://" + address
}

// Get asks the process's HTTP interface; a token of "" sends none.
func (p *Process) Get(t testing.TB, path, token string) Reply {
	t.Helper()
	return Ask(t, http.MethodGet, p.URL(t)+path, token)
}

// Ask makes one HTTP request. A process that does not answer gives status 0.
func Ask(t testing.TB, method, url, token string) Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		t.Fatalf("scenario: %v", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return Reply{}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return Reply{}
	}
	return Reply{Status: res.StatusCode, Header: res.Header, Body: string(body)}
}

// AwaitReady waits until /readyz says yes.
func (p *Process) AwaitReady(t testing.TB) {
	t.Helper()
	var last Reply
	Until(t, 2*Patience, func() string { return "ready, last answer " + last.Body }, func() bool {
		if p.Exited() {
			t.Fatalf("%s ended with %d instead of becoming ready", p.name, p.cmd.ProcessState.ExitCode())
		}
		last = p.Get(t, "/readyz", "")
		return last.Status == http.StatusOK
	})
}
