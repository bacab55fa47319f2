/** Where an image or a file comes from: a URL, a data URL, or a file that the provider has. */
export type MediaSource = string | { readonly fileId: string };

/** A data URL of bytes, or of base64 text; a data URL stays what it is. */
export function dataUrl(data: string | Uint8Array, mediaType: string): string {
  if (typeof data !== 'string') return `data:${mediaType};base64,${base64(data)}`;
  return data.startsWith('data:') ? data : `data:${mediaType};base64,${data}`;
}

/** Wire members of an image; base64 text becomes a data URL. */
export function imageMembers(source: MediaSource | null): { image_url?: string; file_id?: string } {
  if (source === null) return {};
  if (typeof source !== 'string') return { file_id: source.fileId };
  return { image_url: isUrl(source) ? source : dataUrl(source, 'image/png') };
}

/** Wire members of a file; inline data has one of its own. */
export function fileMembers(source: MediaSource | null): { file_data?: string; file_url?: string; file_id?: string } {
  if (source === null) return {};
  if (typeof source !== 'string') return { file_id: source.fileId };
  return isUrl(source) && !source.startsWith('data:') ? { file_url: source } : { file_data: source };
}

/** Base64 has no colon, so the two cannot be taken for each other. */
export const isUrl = (text: string): boolean => /^[a-z][a-z0-9+.-]*:/i.test(text);

function base64(bytes: Uint8Array): string {
  let binary = '';
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}
