/*
 * note.h: writers of tables with named contexts tell the tables' rings.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_NOTE_H
#define POSTERIOR_NOTE_H

/* Called by _PG_init when the library is preloaded: without shared memory there is nobody to tell. */
void		posterior_note_register(void);

#endif							/* POSTERIOR_NOTE_H */
