package planted_test

import (
	"os/exec"
	"strings"
	"testing"

	"waybill/internal/planted"
)

// What is built as everybody builds it has no bug planted.
func TestNothingIsPlantedWithoutATag(t *testing.T) {
	for _, bug := range append(planted.All(), "another") {
		if planted.Is(bug) {
			t.Errorf("%s is planted", bug)
		}
	}
}

// Each bug has a tag that plants it and no other; two at once do not build, as
// nobody could say which was found.
func TestEachTagPlantsItsBug(t *testing.T) {
	run := func(tags string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "go", "run", "-tags", tags, "./testdata/which").CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	for _, bug := range planted.All() {
		if got, err := run(bug.Tag()); got != string(bug) {
			t.Errorf("with the tag %s %q is planted, %v", bug.Tag(), got, err)
		}
	}
	if got, err := run(planted.NoFence.Tag() + "," + planted.Replay.Tag()); err == nil {
		t.Errorf("two tags build: %q", got)
	}
}
