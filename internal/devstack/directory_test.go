package devstack

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADirectoryIsLockedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	first, err := LockDir(dir, "dev")
	if err != nil {
		t.Fatal(err)
	}
	_, err = LockDir(dir, "dev")
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	_ = first.Close()
	again, err := LockDir(dir, "dev")
	if err != nil {
		t.Fatalf("after the first is gone: %v", err)
	}
	_ = again.Close()
}

func TestSomebodyElsesDataAreLeftAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 4711, 4711); err != nil {
		t.Fatal(err)
	}
	if _, err := lockDir(dir, "mariadb"); !errors.Is(err, ErrNotYours) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v behind", left)
	}
}

func TestTooLittleSpaceIsSaidBeforeAStart(t *testing.T) {
	dir := t.TempDir()
	free, known := freeMB(dir)
	if !known {
		t.Skip("this system does not say")
	}
	if err := enoughSpace(dir, math.MaxInt32); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), fmt.Sprint(math.MaxInt32)) {
		t.Errorf("more than any disk has: %v", err)
	}
	if err := enoughSpace(dir, 0); err != nil {
		t.Errorf("with %d MB free: %v", free, err)
	}
	if err := enoughSpace(filepath.Join(dir, "none"), 0); err != nil {
		t.Errorf("where nobody can tell: %v", err)
	}
}
