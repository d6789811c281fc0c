// Presence: who is in a channel, and the news of it for each worker that watches.
#include "base/mem.h"
#include "serve/channel_private.h"

static uint32_t channel_member_hash(struct slice id)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < id.len; i++) hash = (hash ^ (unsigned char)id.ptr[i]) * 16777619u;
    return hash ^ hash >> 16;
}

static struct channel_member **channel_find_member(struct channel *ch, struct slice id,
                                                   uint32_t hash)
{
    struct channel_member **at = &ch->members[hash % CHANNEL_BUCKETS];
    while (*at && !((*at)->hash == hash && slice_equals(channel_member_id(*at), id)))
        at = &(*at)->chain;
    return at;
}

static struct channel_member *channel_member_new(struct slice id, struct slice info)
{
    if (id.len > UINT32_MAX / 2 || info.len > UINT32_MAX / 2) return NULL;
    struct channel_member *m = mem_alloc(sizeof *m + id.len + info.len);
    if (!m) return NULL;
    *m = (struct channel_member){
        .hash = channel_member_hash(id),
        .id_len = (uint32_t)id.len,
        .info_len = (uint32_t)info.len,
    };
    memcpy(m->text, id.ptr, id.len);
    if (info.len) memcpy(m->text + id.len, info.ptr, info.len);
    return m;
}

// Notes ------------------------------------------------------------------------------------------

void channel_notes_free(struct list *notes)
{
    struct list *node;
    while ((node = list_take(notes)) != NULL) {
        struct channel_note *note = list_entry(node, struct channel_note, node);
        payload_release(note->text);
        mem_free(note);
    }
}

static struct payload *channel_note_text(struct slice id, struct slice info)
{
    struct payload *text = payload_new(id.len + info.len);
    if (!text) return NULL;
    memcpy(payload_data(text), id.ptr, id.len);
    if (info.len) memcpy(payload_data(text) + id.len, info.ptr, info.len);
    return text;
}

// Under the lock. Without memory a watcher misses a note, and is not told.
static void channel_note_links(struct channel *ch, enum channel_note_kind kind, struct slice id,
                               struct slice info)
{
    struct payload *text = NULL;
    for (struct list *at = ch->links.next; at != &ch->links; at = at->next) {
        struct channel_link *link = list_entry(at, struct channel_link, of_channel);
        if (kind != CHANNEL_KICK && link->watch_count == 0) continue;
        if (!text && !(text = channel_note_text(id, info))) return;
        struct channel_note *note = mem_alloc(sizeof *note);
        if (!note) break;
        *note = (struct channel_note){
            .text = payload_retain(text), .id_len = (uint32_t)id.len, .kind = (uint8_t)kind};
        list_append(&link->notes, &note->node);
        channel_tell_link(link);
    }
    payload_release(text);
}

// Joining ----------------------------------------------------------------------------------------

struct channel_member *channel_join(struct channel *ch, struct slice id, struct slice info)
{
    struct channel_member *fresh = channel_member_new(id, info), *m = NULL;
    struct channel_member **table = mem_zalloc(CHANNEL_BUCKETS * sizeof *table);
    pthread_mutex_lock(&ch->lock);
    if (!ch->members && table) {
        ch->members = table;
        table = NULL;
    }
    if (ch->members && fresh) {
        struct channel_member **at = channel_find_member(ch, id, fresh->hash);
        if (!*at) {
            list_append(&ch->present, &fresh->node);
            *at = fresh;
            fresh = NULL;
            channel_note_links(ch, CHANNEL_JOIN, id, info);
        }
        m = *at;
        m->connections++;
    }
    pthread_mutex_unlock(&ch->lock);
    mem_free(fresh);
    mem_free(table);
    return m;
}

void channel_leave(struct channel *ch, struct channel_member *m)
{
    if (!m) return;
    pthread_mutex_lock(&ch->lock);
    bool is_last = --m->connections == 0;
    if (is_last) {
        *channel_find_member(ch, channel_member_id(m), m->hash) = m->chain;
        list_remove(&m->node);
        channel_note_links(ch, CHANNEL_LEAVE, channel_member_id(m), channel_member_info(m));
    }
    pthread_mutex_unlock(&ch->lock);
    if (is_last) mem_free(m);
}

uint32_t channel_kick(struct channel *ch, struct slice member)
{
    uint32_t count = 0;
    pthread_mutex_lock(&ch->lock);
    if (ch->members) {
        struct channel_member *m = *channel_find_member(ch, member, channel_member_hash(member));
        if (m) {
            count = m->connections;
            channel_note_links(ch, CHANNEL_KICK, member, (struct slice){0});
        }
    }
    pthread_mutex_unlock(&ch->lock);
    return count;
}

// Listing ----------------------------------------------------------------------------------------

struct channel_packed {
    uint32_t id_len, info_len;
};

static size_t channel_pack_size(const struct channel *ch)
{
    size_t size = 0;
    for (struct list *at = ch->present.next; at != &ch->present; at = at->next) {
        const struct channel_member *m = list_entry(at, struct channel_member, node);
        size += sizeof(struct channel_packed) + m->id_len + m->info_len;
    }
    return size;
}

static void channel_pack(const struct channel *ch, struct buf *to)
{
    for (struct list *at = ch->present.next; at != &ch->present; at = at->next) {
        const struct channel_member *m = list_entry(at, struct channel_member, node);
        struct channel_packed head = {m->id_len, m->info_len};
        buf_append(to, (const char *)&head, sizeof head);
        buf_append(to, m->text, (size_t)m->id_len + m->info_len);
    }
}

bool channel_members(struct channel *ch, struct buf *to)
{
    to->len = 0;
    pthread_mutex_lock(&ch->lock);
    for (size_t size; (size = channel_pack_size(ch)) > to->cap;) {
        pthread_mutex_unlock(&ch->lock); // the room is made outside of it
        if (!buf_reserve(to, size)) return false;
        pthread_mutex_lock(&ch->lock);
    }
    channel_pack(ch, to);
    pthread_mutex_unlock(&ch->lock);
    return true;
}

bool channel_next_member(struct slice *rest, struct slice *id, struct slice *info)
{
    struct channel_packed head;
    if (rest->len < sizeof head) return false;
    memcpy(&head, rest->ptr, sizeof head);
    *id = slice_of(rest->ptr + sizeof head, head.id_len);
    *info = slice_of(id->ptr + id->len, head.info_len);
    *rest = slice_from(*rest, sizeof head + head.id_len + head.info_len);
    return true;
}
