import { UserError } from '../base/errors.ts';
import { checkOptions, kindOf, kinds } from '../base/options.ts';
import { dataUrl, fileMembers, imageMembers, isUrl } from './media.ts';
import type { MediaSource } from './media.ts';

export type ToolOutputText = { type: 'text'; text: string };
export type ToolOutputImage = {
  type: 'image';
  image_url?: string;
  file_id?: string;
  detail?: 'low' | 'high' | 'auto';
};
export type ToolOutputFile = {
  type: 'file';
  file_data?: string;
  file_url?: string;
  file_id?: string;
  filename?: string;
};

/** A URL, base64 text, bytes, or the id of a file at the provider. */
type Source = string | URL | Uint8Array | { fileId: string };

/**
 * Builds outputs that the model sees as text, image or file, alone or in a list. Bytes and base64 text become data URLs;
 * `mediaType` says of what, default `image/png` and `application/octet-stream`.
 *
 * @example tool({ name: 'chart', execute: async () => [toolOutput.text('Sales'), toolOutput.image(await drawChart())] })
 */
export const toolOutput: {
  text(text: string): ToolOutputText;
  image(source: Source, options?: { detail?: 'low' | 'high' | 'auto'; mediaType?: string }): ToolOutputImage;
  file(source: Source, options?: { filename?: string; mediaType?: string }): ToolOutputFile;
} = Object.freeze({
  text(text: string): ToolOutputText {
    if (typeof text !== 'string') throw new UserError(`toolOutput.text takes a string, not ${kindOf(text)}.`);
    return { type: 'text', text };
  },
  image(given: Source, options: { detail?: 'low' | 'high' | 'auto'; mediaType?: string } = {}): ToolOutputImage {
    const where = 'toolOutput.image';
    checkOptions(options, { detail: kinds.oneOf('low', 'high', 'auto'), mediaType: kinds.nonEmptyString }, where);
    const { detail, mediaType = 'image/png' } = options;
    const image: ToolOutputImage = { type: 'image', ...imageMembers(sourceOf(given, mediaType, where)) };
    if (detail !== undefined) image.detail = detail;
    return image;
  },
  file(given: Source, options: { filename?: string; mediaType?: string } = {}): ToolOutputFile {
    const where = 'toolOutput.file';
    checkOptions(options, { filename: kinds.nonEmptyString, mediaType: kinds.nonEmptyString }, where);
    const { filename, mediaType = 'application/octet-stream' } = options;
    const file: ToolOutputFile = { type: 'file', ...fileMembers(sourceOf(given, mediaType, where)) };
    if (filename !== undefined) file.filename = filename;
    return file;
  },
});

function sourceOf(given: unknown, mediaType: string, where: string): MediaSource {
  if (typeof given === 'string' && given !== '') return isUrl(given) ? given : dataUrl(given, mediaType);
  if (given instanceof URL) return given.href;
  if (given instanceof Uint8Array) return dataUrl(given, mediaType);
  if (typeof given === 'object' && given !== null && 'fileId' in given && typeof given.fileId === 'string')
    return { fileId: given.fileId };
  throw new UserError(`${where} takes a URL, base64 text, bytes or { fileId }, not ${kindOf(given)}.`);
}
