package acceptance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"waybill/test/scenario"
)

// pressTab says for each shell how to have the key pressed after a line, whose
// words are the script's arguments.
var pressTab = map[string][]string{
	// What bash does when somebody presses the key: it sets the words and calls the
	// function that the script has registered. Without the package bash-completion.
	"bash": {"--norc", "--noprofile", "-c", `source <(waybill completion bash) || exit 9
complete -p waybill >/dev/null || exit 8
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
$(complete -p waybill | sed 's/.*-F \([^ ]*\).*/\1/')
for offer in "${COMPREPLY[@]}"; do printf '<%s>\n' "${offer%% *}"; done`, "bash"},
	// zsh completes on a terminal only: it gets one, the line and the key, and the
	// builtin through which all matches go tells them. ^X is pressed afterwards.
	"zsh": {"-f", "-c", `zmodload zsh/zpty || exit 9
zpty z zsh -f -i
zpty -w z 'PROMPT=; autoload -U compinit && compinit -u -D; source <(waybill completion zsh)'
zpty -w z 'compadd() { if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -A hits "$@"; (( $#hits )) && print -rl -- "<"$^hits">"; builtin compadd "$@"; }'
zpty -w z 'over() { print "<over>" }; zle -N over'
zpty -w z "bindkey '^I' complete-word '^X' over; print rea''dy"
while zpty -r z line; do [[ $line == ready* ]] && break; done
zpty -w -n z "$*"$'\t\030'
while zpty -r z line; do [[ $line == *'<over>'* ]] && exit; print -r -- "$line"; done
exit 8`, "zsh"},
	// fish has a builtin for the question.
	"fish": {"--no-config", "-c", `waybill completion fish | source
complete -C "$argv" | string replace -r '^([^\t]*).*' '<$1>'
true`},
}

// offer is one match in what these scripts say.
var offer = regexp.MustCompile(`<([^>\n]*)>`)

// offered are the offers of a shell for a line whose last word is being written.
func offered(t *testing.T, shell string, s *scenario.Site, changes map[string]string, words ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scenario.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, append(slices.Concat(pressTab[shell], []string{"waybill"}), words...)...)
	cmd.Env = []string{"PATH=" + filepath.Dir(program.Path(t)) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range s.With(changes) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("%s: %v\n%s", shell, err, said.String())
	}
	var offers []string
	for _, match := range offer.FindAllStringSubmatch(string(out), -1) {
		offers = append(offers, match[1])
	}
	return offers
}

// shells runs a test in each shell that there is; bash has to be.
func shells(t *testing.T, test func(t *testing.T, shell string)) {
	for shell := range pressTab {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
				t.Skip("not on this machine: " + shell)
			}
			test(t, shell)
		})
	}
}

// In a real shell the key completes commands, hooks and requests; and says and
// offers nothing where the database is away or the settings are at fault.
func TestShellsCompletePHIDs(t *testing.T) {
	t.Parallel()
	s := scenario.NewSite(t, &program)
	first, second := hook(t, s, "http://127.0.0.1:1/"), hook(t, s, "http://127.0.0.1:1/")
	execSQL(t, s, "UPDATE "+s.Database("herald")+".herald_webhook SET name = ? WHERE phid = ?", "$(touch /tmp/x) `id`\n\x1b[2J", second.PHID)
	r := queue(t, s, first, "PHID-TASK-x", never)
	both := []string{first.PHID, second.PHID}
	shells(t, func(t *testing.T, shell string) {
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
			got, want := offered(t, shell, s, nil, tt.words...), slices.Clone(tt.want)
			if shell != "bash" { // the others sort as they like
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q offers %q, want %q", tt.words, got, tt.want)
			}
		}
		for name, changes := range useless(s) {
			if got := offered(t, shell, s, changes, "hooks", "pause", ""); len(got) != 0 {
				t.Errorf("%s: offers %q", name, got)
			}
		}
	})
	for name, changes := range useless(s) {
		// The scripts throw away what is said; somebody else's may not.
		_, stderr, code := s.Command(t, changes, "__complete", "hooks", "pause", "")
		if code != 0 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "Completion ended with directive: ") {
			t.Errorf("%s: %d, %q", name, code, stderr)
		}
	}
}

// useless are settings with which no PHID can be had.
func useless(s *scenario.Site) map[string]map[string]string {
	return map[string]map[string]string{
		"away":     {"WAYBILL_HERALD_DSN": "waybill:x@tcp(127.0.0.1:1)/" + s.Database("herald")},
		"no lane":  {"WAYBILL_HERALD_DSN": ""},
		"at fault": {"WAYBILL_LISTEN": "x"},
	}
}
