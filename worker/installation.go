package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"waybill/internal/herald"
	"waybill/workflows"
)

const (
	// nameLength is the length of an installation's name: enough for all that
	// will ever share a Temporal namespace, and short enough to read.
	nameLength = 8
	// hooksAsked bounds how many hooks' workflows are asked for a lost name.
	// Every hook has one, so the first is as good as all.
	hooksAsked = 20
)

// names is where an installation's name is kept.
type names interface {
	Installation(ctx context.Context) (string, error)
	Name(ctx context.Context, id string) (string, error)
}

// TaskQueue is the installation's queue for workflow tasks. Installations that
// share a Temporal namespace must not take each other's tasks: they would look
// for rows and write pauses in the wrong database. Where the name is lost with
// Waybill's database, it is found again in the workflows of the hooks, whose
// PHIDs no other Phorge has; else their runs would wait for workers for ever.
func TaskQueue(ctx context.Context, c client.Client, kept names, hooks []string) (string, error) {
	id, err := kept.Installation(ctx)
	if err != nil {
		return "", err
	}
	if id == "" {
		if id, err = former(ctx, c, hooks); err != nil {
			return "", err
		}
		if id, err = kept.Name(ctx, id); err != nil {
			return "", err
		}
	}
	return workflows.TaskQueue(id), nil
}

// former is the name under which the hooks were known before, or a new one.
func former(ctx context.Context, c client.Client, hooks []string) (string, error) {
	// A hook that cannot be named to Temporal has no workflow.
	hooks = slices.DeleteFunc(slices.Clone(hooks), func(hook string) bool { return !herald.Speakable(hook) })
	for _, hook := range hooks[:min(len(hooks), hooksAsked)] {
		d, err := c.DescribeWorkflow(ctx, workflows.HookID(hook), "")
		var none *serviceerror.NotFound
		if errors.As(err, &none) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for the installation's name: %w", err)
		}
		if id := workflows.Installation(d.RawResponse.GetExecutionConfig().GetTaskQueue().GetName()); id != "" {
			return id, nil
		}
	}
	return strings.ToLower(rand.Text()[:nameLength]), nil
}
