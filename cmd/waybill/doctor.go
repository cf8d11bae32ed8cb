package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"waybill/internal/columns"
	"waybill/internal/doctor"
)

// examination says how thorough `waybill doctor` is.
type examination struct {
	watch  time.Duration // how long the queue is watched, 0 for not at all
	asJSON bool
}

// How long the queue is watched: by default for a round of Phorge's own workers,
// which come back to a row every 15 s.
const (
	watchedByDefault = 20 * time.Second
	watchedAtMost    = time.Hour
)

const doctorHelp = `Examine a Phorge's webhook queue and what Waybill needs around it, before the
handover and at any time later. Changes nothing.

  problem  deliveries cannot be made, or not once
  warning  deliveries go on, and something costs or will
  note     worth knowing
  ok       as it should be

Ends with 1 where there is a problem, or where a check could not be made; with
0 otherwise. While it watches the queue it looks for rows that somebody else
claims or finishes.`

func doctorCommand(p process, do func(context.Context, job, examination) error) *cobra.Command {
	if do == nil {
		return nil
	}
	var e examination
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Examine a Phorge's queue and what Waybill needs, changing nothing",
		Long:  doctorHelp,
		Args:  cobra.NoArgs,
	}
	command.Flags().DurationVar(&e.watch, "watch", watchedByDefault, "how long to watch the queue for other consumers, 0 for not at all")
	jsonFlag(command, &e.asJSON)
	command.PreRunE = func(*cobra.Command, []string) error {
		if e.watch < 0 || e.watch > watchedAtMost {
			return errors.New("--watch takes 0 to " + watchedAtMost.String())
		}
		return nil
	}
	command.RunE = doing(p, func(ctx context.Context, j job) error { return do(ctx, j, e) })
	return command
}

// diagnosis is all that was found, as programs see it.
type diagnosis struct {
	Level    doctor.Level     `json:"level"`
	Findings []doctor.Finding `json:"findings"`
}

var errProblems = errors.New("there are problems; the lines above say what to do")

// runDoctor makes every check that can be made, and says what each came to.
func runDoctor(ctx context.Context, j job, e examination) error {
	if !j.config.Herald.Enabled() {
		return &configError{errNoLane}
	}
	findings, err := examine(ctx, j, e)
	if err != nil {
		return err
	}
	if e.asJSON {
		err = writeJSON(j.stdout, diagnosis{Level: doctor.Worst(findings), Findings: findings})
	} else {
		err = writeFindings(j.stdout, findings)
	}
	if err == nil && doctor.Worst(findings) == doctor.Problem {
		return errProblems
	}
	return err
}

// writeFindings puts a finding on a line, and its advice below.
func writeFindings(w io.Writer, findings []doctor.Finding) error {
	wide := screen(w)
	const level, check = 9, 11 // the longest of each, and a gap
	indent := level + check
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(padded(string(f.Level), level) + padded(f.Check, check) + columns.Fold(columns.Plain(f.Text), wide, indent) + "\n")
		if f.Advice != "" {
			b.WriteString(strings.Repeat(" ", indent) + columns.Fold("-> "+columns.Plain(f.Advice), wide, indent+len("-> ")) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func padded(text string, to int) string { return text + strings.Repeat(" ", max(to-len(text), 1)) }
