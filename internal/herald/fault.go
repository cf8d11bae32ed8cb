package herald

// Subject says which input a Fault is about.
type Subject string

// The two inputs that can be faulty, and what a caller does about it.
const (
	// SubjectProperties leaves the row untouched: PHP's worker would have
	// raised an exception and written nothing.
	SubjectProperties Subject = "properties"
	// SubjectURI fails the row with HookFailure(HookURI).
	SubjectURI Subject = "uri"
)

// Fault is the one error type of this package. Its text is a fixed sentence:
// it never quotes the row or the URI, so it may be logged and stored as it is.
type Fault struct {
	Subject Subject
	// Reason completes the sentence "<subject>: ...".
	Reason string
}

// Error renders the fault for people.
func (f *Fault) Error() string { return string(f.Subject) + ": " + f.Reason }

func badProperties(reason string) error {
	return &Fault{Subject: SubjectProperties, Reason: reason}
}

func badURI(reason string) error {
	return &Fault{Subject: SubjectURI, Reason: reason}
}
