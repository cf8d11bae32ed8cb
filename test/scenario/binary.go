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
	return path, compile(tags, path, "")
}

// compile builds the program from the tree in a directory; empty for this one.
func compile(tags, path, tree string) error {
	// Without a version from git: a tree in the middle of a merge builds too.
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", tags, "-o", path, "waybill/cmd/waybill") //nolint:noctx // bound by go test's own timeout
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &said, &said, tree
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	return nil
}

// BuildEarlier builds the program as it was at a commit of this repository. It
// skips the test where the checkout does not have that commit: a shallow clone or
// an archive.
func BuildEarlier(t testing.TB, commit string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("this checkout has no commit %s to upgrade from (a shallow clone, or no git)", commit)
	}
	tree := t.TempDir()
	archive := filepath.Join(tree, "tree.tar")
	for _, args := range [][]string{
		{"git", "-C", "..", "archive", "-o", archive, commit}, {"tar", "-x", "-f", archive, "-C", tree},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("scenario: %v: %v\n%s", args, err, out)
		}
	}
	path := filepath.Join(tree, "waybill-earlier")
	if err := compile("", path, tree); err != nil {
		t.Fatalf("scenario: the program of %s does not build: %v", commit, err)
	}
	return path
}
