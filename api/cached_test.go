package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const stats = "/api/webhook/stats"

func TestCountsAreRemembered(t *testing.T) {
	b := newBench("")
	for range 50 {
		b.do(http.MethodGet, stats)
	}
	b.clock.move(defaultFresh - 1)
	b.do(http.MethodGet, stats)
	if got := b.queue.asked(); got != 1 {
		t.Errorf("asked %d times while fresh", got)
	}
	b.clock.move(1)
	b.do(http.MethodGet, stats)
	if got := b.queue.asked(); got != 2 {
		t.Errorf("asked %d times in two periods", got)
	}
}

func TestClockThatJumpsBack(t *testing.T) {
	b := newBench("")
	b.do(http.MethodGet, stats)
	b.clock.move(-time.Hour)
	b.do(http.MethodGet, stats)
	if got := b.queue.asked(); got != 2 {
		t.Errorf("asked %d times; an answer from the future is kept for an hour", got)
	}
}

func TestFailuresAreForgottenSooner(t *testing.T) {
	b := newBench("")
	b.queue.fail(errors.New("x"))
	b.do(http.MethodGet, stats)
	b.do(http.MethodGet, stats)
	if got := b.queue.asked(); got != 1 {
		t.Errorf("a failing source was asked %d times at once", got)
	}
	b.queue.fail(nil)
	b.clock.move(failedFresh)
	if w := b.do(http.MethodGet, stats); w.Code != http.StatusOK {
		t.Errorf("still failing: %d", w.Code)
	}
}

// TestCrowdAsksOnce lets a hundred requests arrive while the first count is
// under way.
func TestCrowdAsksOnce(t *testing.T) {
	b := newBench("")
	b.queue.hold, b.queue.entered = make(chan struct{}), make(chan struct{}, 1000)
	var crowd sync.WaitGroup
	for range 100 {
		crowd.Go(func() {
			if w := b.do(http.MethodGet, stats); w.Code != http.StatusOK {
				t.Errorf("status %d", w.Code)
			}
		})
	}
	<-b.queue.entered
	close(b.queue.hold)
	crowd.Wait()
	if got := b.queue.asked(); got != 1 {
		t.Errorf("asked %d times", got)
	}
}

// TestFirstAskerLeaves: the question goes on for the others.
func TestFirstAskerLeaves(t *testing.T) {
	b := newBench("")
	b.queue.hold, b.queue.entered = make(chan struct{}), make(chan struct{}, 10)
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, stats, nil).WithContext(ctx))
		left <- w.Code
	}()
	<-b.queue.entered
	leave()
	if code := <-left; code != http.StatusServiceUnavailable {
		t.Errorf("the one who left got %d", code)
	}
	close(b.queue.hold)
	if w := b.do(http.MethodGet, stats); w.Code != http.StatusOK {
		t.Errorf("the next one got %d", w.Code)
	}
	if b.queue.asked() != 1 || b.queue.sawCancelledAsker {
		t.Errorf("asked %d times, cancelled: %t", b.queue.asked(), b.queue.sawCancelledAsker)
	}
}

func TestReadinessIsAskedOncePerSecond(t *testing.T) {
	clock, asked := newTicking(), 0
	handler := New(Config{Counts: &table{}, Now: clock.Now, Ready: func(ctx context.Context) (bool, []string) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("readiness is asked without a deadline")
		}
		asked++
		return true, nil
	}})
	for range 20 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/readyz", nil))
	}
	if asked != 1 {
		t.Errorf("strangers made %d questions", asked)
	}
}

func TestServeFinishesWhatItBegan(t *testing.T) {
	b := newBench("")
	b.queue.hold, b.queue.entered = make(chan struct{}), make(chan struct{}, 10)
	address, stop, done := running(t, b.handler)
	answer := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + address + stats)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(response.Body)
		answer <- string(body)
	}()
	<-b.queue.entered
	stop()
	close(b.queue.hold)
	if got := <-answer; !strings.Contains(got, `"queuedCount":7`) {
		t.Errorf("answer %q", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("still listening")
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	if err := Serve(context.Background(), listener, Server("", http.NotFoundHandler())); err == nil {
		t.Error("no error")
	}
}
