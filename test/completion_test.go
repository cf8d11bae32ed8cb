package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"waybill/test/scenario"
)

// pressTab is what bash does when somebody presses the key: it sets the words
// and calls the function that the script has registered.
const pressTab = `source <(waybill completion bash) || exit 9
complete -p waybill >/dev/null || exit 8
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
$(complete -p waybill | sed 's/.*-F \([^ ]*\).*/\1/')
printf '%s\n' "${COMPREPLY[@]}"`

// offered are the offers for a line whose last word is being written. Bash is
// started without the package bash-completion.
func offered(t *testing.T, s *scenario.Site, changes map[string]string, words ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"--norc", "--noprofile", "-c", pressTab, "bash", "waybill"}, words...)...)
	cmd.Env = []string{"PATH=" + filepath.Dir(program.Path(t)) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range s.With(changes) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("bash: %v\n%s", err, said.String())
	}
	var offers []string
	for line := range strings.Lines(string(out)) {
		if offer, _, _ := strings.Cut(strings.TrimSpace(line), " "); offer != "" {
			offers = append(offers, offer)
		}
	}
	return offers
}

// In a real bash the key completes commands, hooks and requests; and says and
// offers nothing where the database is away or the settings are at fault.
func TestBashCompletesPHIDs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	s := scenario.NewSite(t, &program)
	first, second := hook(t, s, "http://127.0.0.1:1/"), hook(t, s, "http://127.0.0.1:1/")
	execSQL(t, s, "UPDATE "+s.Database("herald")+".herald_webhook SET name = ? WHERE phid = ?", "$(touch /tmp/x) `id`\n\x1b[2J", second.PHID)
	r := queue(t, s, first, "PHID-TASK-x", never)
	both := []string{first.PHID, second.PHID}
	for _, tt := range []struct {
		words []string
		want  []string
	}{
		{[]string{"hooks", "pause", "PHID-HWBH-"}, both},
		{[]string{"hooks", "release", ""}, both},
		{[]string{"hooks", "resume", second.PHID[:len(second.PHID)-3]}, []string{second.PHID}},
		{[]string{"hooks", "show", ""}, both},
		{[]string{"requests", "list", "--hook", ""}, both},
		{[]string{"requests", "show", ""}, []string{r.PHID}},
		{[]string{"requests", "retry-now", "PHID-HWBR-"}, []string{r.PHID}},
		{[]string{"requests", "list", "--state", "res"}, []string{"resting"}},
		{[]string{"requests", "retry"}, []string{"retry-now"}},
		{[]string{"completion", "f"}, []string{"fish"}},
	} {
		if got := offered(t, s, nil, tt.words...); strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("%q offers %q, want %q", tt.words, got, tt.want)
		}
	}
	for name, changes := range map[string]map[string]string{
		"away":     {"WAYBILL_HERALD_DSN": "waybill:x@tcp(127.0.0.1:1)/" + s.Database("herald")},
		"no lane":  {"WAYBILL_HERALD_DSN": ""},
		"at fault": {"WAYBILL_LISTEN": "x"},
	} {
		if got := offered(t, s, changes, "hooks", "pause", ""); len(got) != 0 {
			t.Errorf("%s: offers %q", name, got)
		}
		// The script throws away what is said; other shells' scripts may not.
		_, stderr, code := s.Command(t, changes, "__complete", "hooks", "pause", "")
		if code != 0 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "Completion ended with directive: ") {
			t.Errorf("%s: %d, %q", name, code, stderr)
		}
	}
}
