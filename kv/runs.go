package kv

import "slices"

// runs are the free pages, sorted, no two of them adjacent.
type runs []run

type run struct{ page, n int }

// take cuts n pages from the first run that has them.
func (r *runs) take(n int) (page int, ok bool) {
	for i := range *r {
		have := &(*r)[i]
		if have.n < n {
			continue
		}
		page = have.page
		have.page += n
		if have.n -= n; have.n == 0 {
			*r = slices.Delete(*r, i, i+1)
		}
		return page, true
	}
	return 0, false
}

// put adds n pages that are not free.
func (r *runs) put(page, n int) {
	i, _ := slices.BinarySearchFunc(*r, page, func(a run, page int) int { return a.page - page })
	*r = slices.Insert(*r, i, run{page, n})
	if i+1 < len(*r) && page+n == (*r)[i+1].page {
		(*r)[i].n += (*r)[i+1].n
		*r = slices.Delete(*r, i+1, i+2)
	}
	if i > 0 && (*r)[i-1].page+(*r)[i-1].n == page {
		(*r)[i-1].n += (*r)[i].n
		*r = slices.Delete(*r, i, i+1)
	}
}
