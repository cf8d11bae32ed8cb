package scenario

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Binary is the waybill program, built from this tree when the first test asks
// for it. The zero value is ready; a test binary has one, as a variable.
type Binary struct {
	// Tags are build tags, for programs with a bug planted.
	Tags string

	once sync.Once
	path string
	err  error
}

// Path builds the program if that has not happened yet and says where it is.
func (b *Binary) Path(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = build(b.Tags) })
	if b.err != nil {
		t.Fatalf("scenario: waybill does not build: %v", b.err)
	}
	return b.path
}

// build compiles into a directory that outlives every single test. Its name is
// of the form that stacktest's sweep removes once this process is gone.
func build(tags string) (string, error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("waybill-test-%d-bin-", os.Getpid()))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "waybill")
	// Without a version from git: a tree in the middle of a merge builds too.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", tags, "-o", path, "waybill/cmd/waybill") //nolint:noctx // bound by go test's own timeout
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said.String())
	}
	return path, nil
}
