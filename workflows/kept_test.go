package workflows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	"waybill/workflows"
)

// keptDir has histories that earlier versions made, by the day of the version.
// They are never recorded again: a run may have begun in any of them.
const keptDir = "testdata/kept"

// kept lists them.
func kept(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(keptDir, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d kept histories, %v", len(files), err)
	}
	return files
}

// A request that sleeps in a retry, or a hook's workflow, goes on in today's code
// where an earlier version left it.
func TestReplayHistoriesOfEarlierVersions(t *testing.T) {
	for _, file := range kept(t) {
		t.Run(strings.TrimPrefix(file, keptDir+"/"), func(t *testing.T) {
			if err := replayer(t, workflows.Request).ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err != nil {
				t.Error(err)
			}
		})
	}
}

// A change of commands without a version of its own would strand what is open:
// each kept history of a request refuses it. With one, each goes on.
func TestReplayOfAChangeNeedsItsVersion(t *testing.T) {
	changed := func(versioned bool) any {
		return func(ctx workflow.Context, in workflows.RequestInput) (workflows.RequestResult, error) {
			if !versioned || workflow.GetVersion(ctx, "rest-first", workflow.DefaultVersion, 1) != workflow.DefaultVersion {
				_ = workflow.Sleep(ctx, soon)
			}
			return workflows.Request(ctx, in)
		}
	}
	for _, file := range kept(t) {
		if strings.HasPrefix(filepath.Base(file), "hook-") {
			continue
		}
		if err := replayer(t, changed(false)).ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err == nil {
			t.Errorf("%s: a change without a version was let through", file)
		}
		if err := replayer(t, changed(true)).ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err != nil {
			t.Errorf("%s: a change behind a version was not: %v", file, err)
		}
	}
}

// The version that Request has is needed: today's histories carry it where those
// of before have none, and both replay.
func TestReplayWithAndWithoutAVersion(t *testing.T) {
	marked := regexp.MustCompile(`"markerName":\s*"Version"`)
	days := map[bool][]string{}
	for _, file := range kept(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		with := marked.Match(text)
		days[with] = append(days[with], filepath.Base(filepath.Dir(file)))
	}
	if !slices.Contains(days[true], "2026-12-01") || slices.Contains(days[true], "2026-11-30") {
		t.Errorf("histories with a version are of %v, those without of %v", days[true], days[false])
	}
}
