package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// leak stands for what a source's error may say, and no answer.
const leak = "SELECT hunter2 FROM phabricator_herald at 10.0.0.9:3306 in /etc/waybill"

// FuzzAStranger reads what a stranger sends as the server does, and looks at the
// answer: whatever comes, it is one of the few that there are, in their form, and
// without the token nothing that the token protects.
func FuzzAStranger(f *testing.F) {
	for _, request := range []string{
		"GET /api/webhook/stats HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n",
		"GET //api/../metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /api%2fwebhook%2fstats HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET http://other/metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD /healthz HTTP/1.0\r\n\r\n",
		"POST /api/webhook/stats HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX-Http-Method-Override: GET\r\n\r\nhello",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /readyz?a=%00&token=" + token + " HTTP/1.1\r\nHost: x\r\nAuthorization: bearer " + token + "\r\n\r\n",
		"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(sent)))
		if err != nil {
			return // the server's own refusal
		}
		b := newBench(token)
		b.queue.fail(errors.New(leak))
		b.unready(leak)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		if !slices.Contains([]int{200, 401, 404, 405, 503}, w.Code) {
			t.Errorf("status %d", w.Code)
		}
		body, _ := io.ReadAll(w.Body)
		for _, word := range []string{"hunter2", "herald", "10.0.0.9", "/etc", token} {
			if bytes.Contains(body, []byte(word)) || strings.Contains(w.Header().Get("WWW-Authenticate"), word) {
				t.Errorf("the answer has %q: %s", word, body)
			}
		}
		known := r.Header.Get("Authorization") == "Bearer "+token && len(r.Header["Authorization"]) == 1
		if !known && (bytes.Contains(body, []byte("waybill_up")) || b.queue.asked() > 0) {
			t.Errorf("a stranger was let in: %s", body)
		}
		if len(body) > 0 && !json.Valid(body) && !bytes.Equal(body, []byte("waybill_up 1\n")) {
			t.Errorf("neither JSON nor metrics: %q", body)
		}
	})
}
