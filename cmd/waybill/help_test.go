package main

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Help that could not be written is no success, of whatever command or topic.
func TestHelpThatCannotBeWrittenFails(t *testing.T) {
	for _, args := range [][]string{{"help", "environment"}, {"environment"}, {"help", "hooks"}, {"help"}, {"hooks", "--help"}, {"hooks"}, {}, {"config"}, {"version"}} {
		var stderr bytes.Buffer
		code := runWith(context.Background(), args, process{
			getenv: func(string) string { return "" }, stdout: full{}, stderr: &stderr, now: time.Now,
		}, wired())
		if code != exitFailed || !strings.Contains(stderr.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%v: code %d, %q", args, code, stderr.String())
		}
	}
}
