import { LabIcon } from '@jupyterlab/ui-components';
import check from '../style/check.svg';
import tiles from '../style/tiles.svg';

/** Four tiles: TileLab itself. */
export const tilesIcon = new LabIcon({ name: 'tilelab:tiles', svgstr: tiles });

/** A tile with a tick: check. */
export const checkIcon = new LabIcon({ name: 'tilelab:check', svgstr: check });
