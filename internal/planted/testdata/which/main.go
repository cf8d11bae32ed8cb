// Command which says which bugs are planted in a build.
package main

import (
	"fmt"

	"waybill/internal/planted"
)

func main() {
	for _, b := range planted.All() {
		if planted.Is(b) {
			fmt.Println(b)
		}
	}
}
