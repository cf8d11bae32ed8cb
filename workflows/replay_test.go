package workflows_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"waybill/workflows"
)

// Recorded with `go test ./workflows -run TestRecord -update` against the
// Temporal server of tools/go.mod.
const historyDir = "testdata/histories"

var update = flag.Bool("update", false, "record the histories again")

func replayer(t *testing.T, request any) worker.WorkflowReplayer {
	t.Helper()
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(request, workflow.RegisterOptions{Name: "Request"})
	r.RegisterWorkflowWithOptions(workflows.Hook, workflow.RegisterOptions{Name: "Hook"})
	return r
}

// Runs that are open while Waybill is updated go on in the new code: every
// recorded history must lead it through the same commands.
func TestReplayEveryShape(t *testing.T) {
	for name := range shapes() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(historyDir, name+".json")
			if _, err := os.Stat(file); err != nil {
				t.Fatalf("no history of this shape: run the test with -update (%v)", err)
			}
			if err := replayer(t, workflows.Request).ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err != nil {
				t.Error(err)
			}
		})
	}
}

// Nothing is stored that no shape explains.
func TestReplayHasNoStrayHistories(t *testing.T) {
	files, err := os.ReadDir(historyDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := shapes()[strings.TrimSuffix(f.Name(), ".json")]; !ok {
			t.Errorf("%s belongs to no shape", f.Name())
		}
	}
}

// The replay has teeth: code that rests before it claims is not let through.
func TestReplayRefusesOtherCommands(t *testing.T) {
	other := func(ctx workflow.Context, in workflows.RequestInput) (workflows.RequestResult, error) {
		_ = workflow.Sleep(ctx, soon)
		return workflows.Request(ctx, in)
	}
	file := filepath.Join(historyDir, "delivered.json")
	if err := replayer(t, other).ReplayWorkflowHistoryFromJSONFile(quiet{}, file); err == nil {
		t.Error("a history was replayed by code that never made it")
	}
}

// Stored histories name no machine.
func TestReplayHistoriesAreNeutral(t *testing.T) {
	field := regexp.MustCompile(`"(identity|name)":\s*"([^"]*)"`)
	known := map[string]bool{
		recorder: true, recorder + ":sticky": true, shared: true, "nobody": true,
		"Request": true, "Hook": true, "Claim": true, "Send": true, "WriteBack": true, "Pause": true, "Resume": true, "Paused": true,
		"temporal-go": true, "history-service": true,
	}
	for name := range shapes() {
		data, err := os.ReadFile(filepath.Join(historyDir, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 64<<10 {
			t.Errorf("%s: %d bytes", name, len(data))
		}
		for _, m := range field.FindAllSubmatch(data, -1) {
			if v := string(m[2]); v != "" && !known[v] {
				t.Errorf("%s: %s", name, m[0])
			}
		}
	}
}
